"""Loop: from answers to a closed turn (T3b), in one transaction or not at all.

In it, in this order: whether the rooms that she speaks into are still of this conversation, the turn by compare-and-set on run and
holder (else everything is discarded), the session's figures, what is said and where it counts, what her Self is asked, how much
she wants to speak, the pauses, and, where the turn ends the run, the run. Who is told of a pause is the heartbeat's.

A room that became another conversation meanwhile (a DM that gained a third member) is not told what was meant for the one before:
nothing is said, the mail stays, and is taken again in the conversation that it now belongs to.
"""

from dataclasses import dataclass, field
from typing import Any

from mind_body.control.govern import RUN_CAP
from mind_body.crash import crash_point
from mind_body.ids import derived_id
from mind_body.matrix.speech import render_reaction, render_say
from mind_body.mind.outbox import admit_said
from mind_body.mind.places import admit_turn_places
from mind_body.mind.pulses import admit_pulse, read_pulse
from mind_body.mind.records import NewSaid, TurnState
from mind_body.mind.rooms import read_room
from mind_body.mind.runs import clear_pause, end_run, read_pauses, set_pause
from mind_body.mind.sessions import end_session, record_use
from mind_body.mind.store import Transaction
from mind_body.mind.turning import SessionUse, TurnEnd
from mind_body.mind.turns import close_turn
from mind_body.model.pausing import PASSING, name_apart, plan_pause
from mind_body.model.session import Failed, Limited, Outcome, TurnResult
from mind_body.persona.opening import Opened, Place
from mind_body.persona.outcomes import answered_text, reason_of, state_of, total_usage
from mind_body.persona.places import place_of
from mind_body.persona.plan import ceiling_tokens
from mind_body.persona.pulse_acts import pulse_of
from mind_body.persona.reply import Read
from mind_body.persona.starting import NOTHING_ASKED, Asked, ask_self


@dataclass(slots=True)
class Course:
    """What happened in a turn, call by call."""

    outcome: Outcome
    asked: list[str] = field(default_factory=list)
    """What each call appended; the first is the turn's input."""
    results: list[TurnResult] = field(default_factory=list)
    read: Read | None = None
    """What is admitted of the answer."""
    model_ms: int = 0
    work: Asked = NOTHING_ASKED
    """What it asked of her Self, once it is recorded."""
    gone: bool = False
    """Nobody goes on in this session: it is ended, the run goes on, and the rows are taken again at once."""


def close_with(place: Place, opened: Opened, course: Course, now: int) -> bool:
    """T3b. False when the run was not ours any more: nothing has happened, and the reply is discarded."""
    rows = _render_rows(opened, course)
    end = _turn_end(course)
    crash_point("persona.model-answered")
    with place.mind.write() as tx:
        if _has_moved(tx, opened, course):
            course.outcome, course.read, course.gone = Failed("fault", now, MOVED), None, True
            rows, end = [], _turn_end(course)
        if not close_turn(tx, opened.turn_id, opened.run.id, holder=place.holder, end=end, now=now):
            return False
        _record_session(tx, place, opened, course, now)
        admit_said(tx, rows, opened.turn_id, now)
        _record_reply(tx, place, opened, course, now)
        _settle_pauses(tx, place, opened, course, now)
    crash_point("persona.T3b")
    return True


def ends_run(course: Course) -> bool:
    """Whether the run ends with this turn."""
    return isinstance(course.outcome, Limited | Failed) and not course.gone


def outcome_word(outcome: Outcome) -> str:
    """The run's outcome: `limited`, `held`, `budget`, `spend`, `stopped` or `failed`."""
    if isinstance(outcome, Limited):
        return "limited"
    if isinstance(outcome, Failed) and outcome.kind in {"held", "budget", "spend"}:
        return "stopped" if outcome.reason == STOPPED else outcome.kind
    return "failed"


STOPPED = "the persona was told to stop"
MOVED = "the room became another conversation while she answered"


def _has_moved(tx: Transaction, opened: Opened, course: Course) -> bool:
    if course.read is None:
        return False
    room_ids = {say.room_id for say in course.read.say} | {react.room_id for react in course.read.react}
    rooms = [read_room(tx, room_id) for room_id in room_ids]
    return any(room is not None and room.conversation != opened.batch.conversation for room in rooms)


def _render_rows(opened: Opened, course: Course) -> list[NewSaid]:
    if course.read is None:
        return []
    rows: list[NewSaid] = []
    for number, say in enumerate(course.read.say):
        base = derived_id("say", opened.turn_id, str(number))
        rows += render_say(base, say.room_id, say.text, thread=say.thread, reply_to=say.reply_to)
    for number, react in enumerate(course.read.react):
        rows.append(render_reaction(derived_id("react", opened.turn_id, str(number)), react.room_id, react.key, react.event_id))
    return rows


def _turn_end(course: Course) -> TurnEnd:
    usage = total_usage(course.results)
    received: list[dict[str, Any]] = []
    for at, result in enumerate(course.results):
        text = answered_text(result)
        if text is not None:
            received.append({"at": at, "text": text, "blocks": list(result.received)})
    return TurnEnd(
        state=state_of(course.outcome),
        why=reason_of(course.outcome),
        sent=tuple({"at": at, "text": text} for at, text in enumerate(course.asked) if at > 0),
        received=tuple(received),
        cost_micro_usd=sum(result.cost_micro_usd for result in course.results),
        uncached_tokens=usage.uncached,
        cache_read_tokens=usage.cache_read,
        cache_write_5m_tokens=usage.cache_write_5m,
        cache_write_1h_tokens=usage.cache_write_1h,
        output_tokens=usage.output,
        model_ms=course.model_ms,
    )


def _record_reply(tx: Transaction, place: Place, opened: Opened, course: Course, now: int) -> None:
    read = course.read
    if read is None:
        return
    admit_turn_places(tx, opened.turn_id, {place_of(say) for say in read.say})
    course.work = ask_self(tx, place, opened, read, now)
    pulse = pulse_of(read.wish, read_pulse(tx), opened.turn_id, now)
    if pulse is not None:
        admit_pulse(tx, pulse)


def _record_session(tx: Transaction, place: Place, opened: Opened, course: Course, now: int) -> None:
    answered = [result for result in course.results if answered_text(result) is not None]
    if not answered:
        return
    last = answered[-1]
    window = last.window_tokens or place.provider.window_tokens
    use = SessionUse(
        cursor=last.cursor,
        prefix_tokens=last.last_request.prefix + last.last_request.output,
        window_tokens=window,
        ceiling_tokens=ceiling_tokens(window, place.provider.output_cap),
    )
    record_use(tx, opened.plan.session_id, opened.turn_id, use, now)


def _settle_pauses(tx: Transaction, place: Place, opened: Opened, course: Course, now: int) -> None:
    outcome = course.outcome
    if course.gone:
        end_session(tx, opened.plan.session_id, reason_of(course.outcome) or "session gone", now)
        return
    if state_of(outcome) in {TurnState.REPLIED, TurnState.UNREADABLE, TurnState.REFUSED}:
        for cause in PASSING:
            clear_pause(tx, cause)
        for cause in ("spend", RUN_CAP):
            clear_pause(tx, name_apart(cause, opened.batch.conversation))
        return
    pause = plan_pause(outcome, read_pauses(tx), now, conversation=opened.batch.conversation)
    if pause is not None:
        set_pause(tx, pause)
    if ends_run(course):
        end_run(tx, opened.run.id, place.holder, outcome_word(outcome), reason_of(outcome) or "", now)
