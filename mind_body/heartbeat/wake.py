"""Rule: whether a Mind is woken now, for which conversations, and why; else until when it waits, or why it rests (design §9).

In this order:

1. One run at a time: while one is live, Wait.
2. Held is Rest, whatever is pending.
3. A pause that is not over is Wait until its end; so is the back-off after runs that came to nothing. A pause that an operator
   mends ends where one of the files that can mend it was changed since.
4. Mail is due 1.5 s after the newest of its conversation, at most 5 s after the oldest: one breath, one turn. What is due is opened
   together; what is not waits for the run after.
5. Her own work that is over wakes her where it was asked for, once, together with mail that is due there; mail that is not due yet
   will tell it.
6. A beat is due a cadence after the last run, where she has one and nobody's mail waits.
7. A clock that stepped back makes no wait longer than twice its length.

Total: every question has an answer with its reason, and every Wait names the instant at which asking again makes sense.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from mind_body.control.effective import Control, Dial, Held
from mind_body.control.people import is_operator
from mind_body.mind.records import Pause, Run
from mind_body.mind.wake_facts import PendingMail, WakeFacts
from mind_body.mind.work_records import SELF_PAUSE
from mind_body.settings import HostConfig, MindConfig, PersonaConfig

Cause: TypeAlias = Literal["operator", "direct", "mention", "self_run", "beat"]
FRUITLESS = frozenset({"dead"})
"""Outcomes of runs that came to nothing whatever their turns did."""
EXCUSED = frozenset({"held"})
"""Outcomes of runs without a turn that say nothing against the next one."""
MENDABLE = ("authentication", "payment", "budget", "fault")
"""Causes of a pause that an operator mends. Turning the dial, releasing the brake, changing her configuration or her model's key
says "try now"; else they end by themselves."""


@dataclass(frozen=True, slots=True)
class Open:
    """Open a run that grants these conversations."""

    conversations: tuple[str, ...]
    cause: Cause
    reason: str


@dataclass(frozen=True, slots=True)
class Wait:
    """There is something, and not now. `until` is ms since the epoch; None is until the mind changes."""

    until: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Rest:
    """There is nothing to wait for."""

    reason: str


Decision: TypeAlias = Open | Wait | Rest


@dataclass(frozen=True, slots=True)
class Dead:
    """A live run that nobody will ever end; outcome and reason go into its record."""

    outcome: Literal["dead", "held"]
    reason: str


@dataclass(frozen=True, slots=True)
class Unheld:
    """A live run that nobody has adopted; dead at `until`."""

    until: int


@dataclass(frozen=True, slots=True)
class Busy:
    """A live run in the hands of a living process."""


def judge_run(run: Run, locked_by: str | None, control: Control, host: HostConfig, now: int) -> Dead | Unheld | Busy:
    """What a live run is, given who holds the lock of its kind (None: nobody). What nobody may adopt is dead at once."""
    if run.holder is not None:
        if locked_by == run.holder:
            return Busy()
        return Dead("dead", "its holder is gone" if locked_by is None else "its holder is gone, and another has the lock")
    if isinstance(control, Held):
        return Dead("held", f"held before anybody adopted it: {control.reason}")
    grace = _ms(host.start_grace_s)
    if abs(now - run.opened_at) < grace:
        return Unheld(run.opened_at + grace)
    return Dead("dead", f"nobody adopted it within {host.start_grace_s:g} s")


def bury(facts: WakeFacts, dead: Dead, now: int) -> WakeFacts:
    """The facts as they are once the live run has been closed."""
    if facts.live is None:
        return facts
    ended = replace(facts.live, ended_at=now, outcome=dead.outcome, end_reason=dead.reason)
    return replace(facts, live=None, recent=(ended, *facts.recent))


def decide_wake(
    facts: WakeFacts, control: Control, config: MindConfig, host: HostConfig, now: int, *, mended_at: int = 0
) -> Decision:
    """The one answer. A dead run must have been closed before; `facts.live` is trusted.

    `mended_at`: when a file that may mend a pause was last changed; 0 for not known.
    """
    if facts.live is not None:
        return Wait(None, f"run {facts.live.id} is {'held' if facts.live.holder else 'open'}")
    if isinstance(control, Held):
        return Rest(f"held: {control.reason}")
    pauses = [pause for pause in facts.pauses if not _is_mended(pause, mended_at, now)]
    hindrance = _hindrance(pauses, facts.recent, host, now)
    mail = _decide_mail(facts.pending, config, now)
    answer = _decide_news(facts, mail) or mail or _decide_beat(facts, config.persona, control.dial, now)
    if hindrance is None or isinstance(answer, Rest):
        return answer
    until = max(hindrance.until or 0, (answer.until or 0) if isinstance(answer, Wait) else 0)
    return Wait(until, hindrance.reason)


def backoff_ms(strikes: int, host: HostConfig) -> int:
    """How long nothing is tried after so many failures in a row: doubling from restart_min_s to restart_max_s."""
    if strikes < 1:
        return 0
    return _ms(min(host.restart_min_s * 2 ** min(strikes - 1, 32), host.restart_max_s))


def _is_mended(pause: Pause, mended_at: int, now: int) -> bool:
    # A change that the clock has not reached yet proves nothing: the clock was set back.
    return pause.cause in MENDABLE and 0 < pause.since < mended_at <= now


def _hindrance(pauses: Sequence[Pause], recent: Sequence[Run], host: HostConfig, now: int) -> Wait | None:
    """What forbids any run before an instant: the latest of all pauses and of the back-off."""
    hers = [pause for pause in pauses if not pause.cause.startswith(SELF_PAUSE)]
    waits = [Wait(pause.until, f"paused ({pause.cause}): {pause.reason}") for pause in hers]
    strikes = _fruitless(recent)
    ended = recent[0].ended_at if strikes else None
    if ended is not None and abs(now - ended) < backoff_ms(strikes, host):
        times = "run" if strikes == 1 else f"{strikes} runs in a row"
        waits.append(Wait(ended + backoff_ms(strikes, host), f"the last {times} came to nothing"))
    return max((wait for wait in waits if (wait.until or 0) > now), key=lambda wait: wait.until or 0, default=None)


def _fruitless(recent: Sequence[Run]) -> int:
    """How many of the newest runs in a row came to nothing."""
    count = 0
    for run in recent:
        if run.outcome not in FRUITLESS and (run.turns or run.outcome in EXCUSED):
            break
        count += 1
    return count


def _decide_mail(pending: Sequence[PendingMail], config: MindConfig, now: int) -> Open | Wait | None:
    if not pending:
        return None
    due = [(_due_at(mail, config.persona, now), mail) for mail in pending]
    ripe = [mail for at, mail in due if at <= now]
    if not ripe:
        return Wait(min(at for at, _ in due), "more may come of the same breath")
    causes: list[Cause] = [_cause(mail, config) for mail in ripe]
    cause = min(causes, key=("operator", "direct", "mention", "beat").index)
    count = sum(mail.count for mail in ripe)
    where = f" in {len(ripe)} conversations" if len(ripe) > 1 else ""
    return Open(tuple(mail.conversation for mail in ripe), cause, f"{count} message{'s' if count > 1 else ''}{where} ({cause})")


def _decide_news(facts: WakeFacts, mail: Open | Wait | None) -> Open | None:
    """Where work is over and nobody's mail is about to tell it."""
    due = mail.conversations if isinstance(mail, Open) else ()
    waiting = {one.conversation for one in facts.pending}
    awaited = tuple(one for one in facts.awaited if one not in waiting)
    if not awaited:
        return None
    if isinstance(mail, Open):
        return replace(mail, conversations=(*due, *awaited), reason=f"{mail.reason}, and work of hers that is over")
    return Open(awaited, "self_run", "work of hers that is over")


def _due_at(mail: PendingMail, persona: PersonaConfig, now: int) -> int:
    if mail.newest_at - now > _ms(persona.debounce_max_s):
        return now  # the clock stepped back since
    return min(mail.newest_at + _ms(persona.debounce_s), mail.oldest_at + _ms(persona.debounce_max_s))


def _cause(mail: PendingMail, config: MindConfig) -> Cause:
    if any(is_operator(sender, config.people) for sender in mail.senders):
        return "operator"
    return "direct" if mail.conversation.startswith("direct:") else "mention"


def _decide_beat(facts: WakeFacts, persona: PersonaConfig, dial: Dial, now: int) -> Decision:
    if not persona.beat:
        return Rest("nobody spoke to her")
    last = max((run.ended_at or run.opened_at for run in facts.recent), default=facts.first_heard_at)
    if facts.active_conversation is None or last is None:
        return Rest("she has heard nobody yet, so there is nobody to speak to unprompted")
    due = last + _ms(dial.cadence_s)
    if now < due:
        return Wait(due, "the next beat")
    return Open((facts.active_conversation,), "beat", f"{dial.cadence_s:g} s since the last run")


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
