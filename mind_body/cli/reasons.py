"""Rule: why a Mind is or is not acting now, and when she next may: the heartbeat's own rules, told in sentences (`mind why`).

1. Nothing is decided here: each answer is `decide_wake`'s or `decide_claim`'s, and what holds it up is what the governor says.
2. Mail, scheduled wakes and work are answered apart, since each has reasons of its own; `decided` is what the heartbeat comes to.
3. A run that died counts as closed, and what an operator has just mended as mended: that is what the heartbeat does first.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from mind_body.cli.render import render_wait, render_when
from mind_body.control.effective import Control, Held, Released
from mind_body.control.govern import HOSTS, MENDABLE, Ask, Cause, House, Skip, find_skips, spacing_ms
from mind_body.control.loops import TurnedAway
from mind_body.control.people import is_operator
from mind_body.heartbeat.claim import Decision as Claimed
from mind_body.heartbeat.claim import decide_claim
from mind_body.heartbeat.wake import Busy, Dead, Decision, Open, Rest, Unheld, Wait, bury, decide_wake
from mind_body.mind.records import Run
from mind_body.mind.wake_facts import PendingMail, Standing, WakeFacts
from mind_body.mind.work_records import OpenWork, WorkFacts

Name: TypeAlias = Literal["mail", "scheduled wakes", "work"]
State: TypeAlias = Literal["acting", "now", "waits", "rests"]
PIECES_SHOWN = 10
Verdict: TypeAlias = Dead | Unheld | Busy | None


@dataclass(frozen=True, slots=True)
class Beat:
    """The host's beat, as it stands."""

    at: int
    """When the next may be; not after now where one is due."""
    apart_s: int


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of one Mind at one instant."""

    name: str
    control: Control
    tried_anew: bool
    """An operator has released her or turned the dial, and the heartbeat has not looked since."""
    house: House
    work_house: House
    wake: WakeFacts
    live: Verdict
    turned_away: tuple[TurnedAway, ...]
    day_ends: int
    work: WorkFacts
    work_live: Verdict
    beat: Beat | None
    now: int

    def when(self, at: int) -> str:
        return render_when(at, self.house.host.time_zone, self.now)


@dataclass(frozen=True, slots=True)
class Topic:
    """One thing that she might act for."""

    name: Name
    state: State
    told: str
    """One sentence."""
    because: tuple[str, ...] = ()
    """What holds it up, and what else is known."""
    next_at: int | None = None
    """When she may act for it, by what is known now; None where time alone does not bring it."""


@dataclass(frozen=True, slots=True)
class Explained:
    decided: Decision
    claimed: Claimed
    topics: tuple[Topic, ...]


def explain(known: Known) -> Explained:
    """Total: there is an answer about every Mind."""
    facts, work = _as_looked_at(known)
    return Explained(
        decided=decide_wake(facts, known.control, known.house, known.now),
        claimed=decide_claim(work, known.control, known.work_house, known.now),
        topics=(_of_mail(known, facts), _of_beats(known, facts), _of_work(known, work)),
    )


def _as_looked_at(known: Known) -> tuple[WakeFacts, WorkFacts]:
    """The facts as the heartbeat has them when it decides."""
    facts, work = known.wake, known.work
    if isinstance(known.live, Dead):
        facts = bury(facts, known.live, known.now)
    if isinstance(known.work_live, Dead):
        work = replace(work, standing=replace(work.standing, live=None))
    if known.tried_anew and isinstance(known.control, Released):
        facts = replace(facts, standing=_mended(facts.standing))
        work = replace(work, standing=_mended(work.standing))
    return facts, work


def _mended(standing: Standing) -> Standing:
    return replace(standing, pauses=tuple(one for one in standing.pauses if one.cause not in MENDABLE), apart=())


def _of_mail(known: Known, facts: WakeFacts) -> Topic:
    """What people wrote to her, and work of hers that they are to hear of."""
    count = sum(mail.count for mail in facts.pending)
    news = "the end of her work is to be told" if facts.awaited else ""
    waiting = " and ".join(part for part in (_count(count) if count else "", news) if part)
    away = tuple(_away(known))
    if (live := facts.standing.live) is not None:
        after = (f"{waiting[0].upper()}{waiting[1:]}: in this run, or in the one after it.",) if waiting else ()
        return Topic("mail", "acting", _run(known, live, known.live), (*after, *away))
    dead = _buried(known.wake.standing.live, known.live)
    if not waiting:
        return _of_turned_away(known, (*dead, *away))
    answer = decide_wake(facts, known.control, _without_beats(known.house), known.now)
    skips = [skip for cause in _causes(facts.pending, known.house) for skip in _skips(known, facts.standing, cause)]
    return _topic("mail", waiting, answer, (*dead, *_because(known, answer, skips), *away), known)


def _of_turned_away(known: Known, because: tuple[str, ...]) -> Topic:
    """There is no other mail. What a person or an operator alone can mend waits for no time."""
    timed = [one for one in known.turned_away if one.kind not in {"loop", "dear"}]
    if not timed:
        return Topic("mail", "rests", "Nobody waits for an answer.", because)
    again = min(one.until or known.day_ends for one in timed)
    told = f"{_count(sum(one.mail.count for one in timed))}: she may act {known.when(again)}."
    return Topic("mail", "waits", told, because, again)


def _of_beats(known: Known, facts: WakeFacts) -> Topic:
    name: Name = "scheduled wakes"
    if (none := _no_beats(known, facts)) is not None:
        return Topic(name, "rests", none)
    if facts.standing.live is not None:
        return Topic(name, "rests", "None while she is acting.")
    alone = replace(facts, pending=(), awaited=())
    answer = decide_wake(alone, known.control, known.house, known.now)
    spacing = _spacing(known, facts.standing)
    if isinstance(answer, Open) and known.beat is not None:
        at = max(known.beat.at, known.now)
        told = f"She may speak unprompted on a beat of the host; the next is {known.when(at)}, and wakes one Mind."
        return Topic(name, "now" if at <= known.now else "waits", told, (*spacing, _apart(known.beat)), at)
    because = (*_because(known, answer, _skips(known, facts.standing, "beat")), *spacing)
    if isinstance(answer, Wait):
        return Topic(name, "waits", f"The next may come {known.when(answer.until)}, on a beat of the host.", because, answer.until)
    return Topic(
        name, "rests", "None until she is released." if isinstance(known.control, Held) else f"None: {answer.reason}.", because
    )


def _no_beats(known: Known, facts: WakeFacts) -> str | None:
    """Why she has no scheduled wakes at all."""
    persona = known.house.config.persona
    if not persona.beat:
        return "Off: [persona] beat is false."
    if not persona.home_room:
        return "None: there is no home_room."
    if facts.home is None and facts.home_fault:
        return f"None: {facts.home_fault}."
    if facts.home is None:
        return f"None: she is not in her home room {persona.home_room}: invite her."
    return "None before she has heard anything at all." if facts.standing.last_act_at is None else None


def _of_work(known: Known, work: WorkFacts) -> Topic:
    if not known.house.config.self.enabled:
        return Topic("work", "rests", "She has no Self: [self] enabled is false.")
    proposals = tuple(f"A brief waits for {one.follow_up.asked_by} to confirm it." for one in work.proposals)
    if work.live is not None:
        after = (f"{_pieces(len(work.open))} behind it.",) if work.open else ()
        return Topic("work", "acting", _run(known, work.live, known.work_live), (*after, *proposals))
    dead = _buried(known.work.live, known.work_live)
    if not work.open:
        return Topic(
            "work", "rests", "There is none that waits for a run." if not dead else "It is taken up again.", (*dead, *proposals)
        )
    answer = decide_claim(work, known.control, known.work_house, known.now)
    skips = find_skips(Ask("work", known.now), replace(work.standing, recent=()), known.control, known.work_house, known.now)
    each = [_piece(known, work, one) for one in work.open[:PIECES_SHOWN]] if not skips else []
    because = (*dead, *_because(known, answer, skips), *each, *proposals)
    return _topic("work", _pieces(len(work.open)).lower(), answer, because, known)


def _topic(name: Name, waiting: str, answer: Decision | Claimed, because: Sequence[str], known: Known) -> Topic:
    begin, told = f"{waiting[0].upper()}{waiting[1:]}", tuple(dict.fromkeys(because))
    if isinstance(known.control, Held):
        return Topic(name, "rests", f"{begin}, until she is released.", told)
    if isinstance(answer, Wait):
        return Topic(name, "waits", f"{begin}: she acts {known.when(answer.until)}.", told, answer.until)
    if isinstance(answer, Rest):
        return Topic(name, "rests", f"{begin}, and time alone brings nothing: {answer.reason}.", told)
    return Topic(name, "now", f"{begin}: she acts as soon as the heartbeat looks.", told, known.now)


def _because(known: Known, answer: Decision | Claimed, skips: Sequence[Skip]) -> Iterator[str]:
    """What holds it up, the longest last; what only waits for the rest of a breath is told by the answer."""
    for skip in sorted(skips, key=lambda one: one.look_again_at):
        if skip.kind not in {"held", "busy"}:
            yield _skip(known, skip)
    if isinstance(answer, Wait) and answer.skip is not None and answer.skip.kind == "breath":
        yield "More may come of the same breath."


def _skip(known: Known, skip: Skip) -> str:
    mend = ""
    if skip.kind == "paused" and skip.cause in MENDABLE:
        mend = " Sooner, when you mend it: her file, her key, the dial, or a release."
    if skip.cause == "spend" and HOSTS in skip.reason:
        mend = " Sooner, when you raise [spend] of the host: nobody is asked about it."
    elif skip.kind == "spend" or skip.cause == "spend":
        mend = f" Sooner, when an operator allows it once more (`mind questions {known.name}`)."
    return f"{skip.reason[0].upper()}{skip.reason[1:]}; over {known.when(skip.look_again_at)}.{mend}"


def _skips(known: Known, standing: Standing, cause: Cause) -> list[Skip]:
    return find_skips(Ask(cause, known.now), standing, known.control, known.house, known.now)


def _causes(pending: Sequence[PendingMail], house: House) -> Iterator[Cause]:
    """Quiet hours alone tell people apart: operators' mail, and all else."""
    theirs = [any(is_operator(sender, house.config.people) for sender in mail.senders) for mail in pending]
    if any(theirs):
        yield "operator"
    if not all(theirs) or not theirs:
        yield "mention"


def _without_beats(house: House) -> House:
    persona = house.config.persona.model_copy(update={"beat": False})
    return replace(house, config=house.config.model_copy(update={"persona": persona}))


def _run(known: Known, run: Run, verdict: Verdict) -> str:
    what = f"Run {run.id} for '{run.cause}' ({run.reason}) is under way since {render_wait(known.now - run.opened_at)}"
    if isinstance(verdict, Unheld):
        return f"{what}; nobody has taken it yet: it is closed as dead {known.when(verdict.until)}, and another opened."
    return f"{what}, held by {run.holder}."


def _buried(run: Run | None, verdict: Verdict) -> tuple[str, ...]:
    if run is None or not isinstance(verdict, Dead):
        return ()
    return (f"Run {run.id} has died ({verdict.reason}): it is closed when the heartbeat looks.",)


def _away(known: Known) -> Iterator[str]:
    """Mail that brings no turn."""
    for one in known.turned_away:
        again = {
            "loop": "when a person speaks there",
            "dear": f"when one run may cost more (`mind dial {known.name} --base-run-usd …`)",
        }.get(one.kind) or known.when(one.until or known.day_ends)
        where = f"thread {one.mail.thread} of {one.mail.room_id}" if one.mail.thread else one.mail.room_id
        yield f"{_count(one.mail.count, 'brings', 'bring')} no turn: by {one.mail.sender} in {where}; {one.reason}; again {again}."


def _spacing(known: Known, standing: Standing) -> tuple[str, ...]:
    if not isinstance(known.control, Released):
        return ()
    dial = known.control.dial
    apart = render_wait(spacing_ms(dial, standing.silent_beats))
    cadence = f"{render_wait(round(dial.cadence_s * 1000))} by the dial"
    silent = standing.silent_beats
    times = f", doubled for each of {silent} in silence" if silent > 1 else ", doubled for one in silence" if silent else ""
    return (f"They are {apart} apart: {cadence}{times}.",)


def _apart(beat: Beat) -> str:
    return f"Beats of the host are {render_wait(beat.apart_s * 1000)} apart."


def _piece(known: Known, work: WorkFacts, one: OpenWork) -> str:
    """One piece of work, judged as if it were the only one."""
    answer = decide_claim(replace(work, open=(one,)), known.control, known.work_house, known.now)
    name = f"{one.follow_up.id} for {one.follow_up.asked_by} in '{one.follow_up.workspace}'"
    if isinstance(answer, Wait):
        return f"{name} waits: {answer.reason}; over {known.when(answer.until)}."
    return f"{name} is passed over: {answer.reason}." if isinstance(answer, Rest) else f"{name} may begin."


def _count(number: int, one: str = "waits", many: str = "wait") -> str:
    return f"{number} message {one}" if number == 1 else f"{number} messages {many}"


def _pieces(number: int) -> str:
    return "1 piece of work waits" if number == 1 else f"{number} pieces of work wait"
