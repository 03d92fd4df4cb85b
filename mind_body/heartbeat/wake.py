"""Rule: what would wake a Mind, for which conversations, and what the governor says to it (design §9).

In this order:

1. Mail is ripe 1.5 s after the newest of its conversation, at most 5 s after the oldest: one breath, one turn. What is ripe is
   opened together; what is not waits for the run after.
2. Her own work that is over wakes her where it was asked for, once, together with mail that is ripe there; mail that is not ripe
   yet will tell it.
3. A scheduled wake, where she has such, a home room, and nothing else: it grants her home room and nothing else.
4. Whatever it is, the governor is asked. While quiet hours hold everyone's mail back, operators' is a run of its own; else what is
   ripe is opened together.

Total: every question has an answer with its reason, and every Wait names the instant at which asking again makes sense.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from mind_body.control.effective import Control, Held
from mind_body.control.govern import Ask, Cause, House, Skip, Wake, govern, keeps_quiet
from mind_body.control.people import is_operator
from mind_body.mind.records import Run
from mind_body.mind.wake_facts import PendingMail, WakeFacts
from mind_body.settings import HostConfig, MindConfig, PersonaConfig

WEIGHTIEST: tuple[Cause, ...] = ("operator", "direct", "mention")
"""Of several causes the one that names the run."""


@dataclass(frozen=True, slots=True)
class Open:
    """Open a run that grants these conversations. One for a `beat` is opened for the Mind that is picked."""

    conversations: tuple[str, ...]
    cause: Cause
    reason: str


@dataclass(frozen=True, slots=True)
class Wait:
    """There is something, and not now. `until` is ms since the epoch."""

    until: int
    reason: str
    skip: Skip | None = None
    """What the governor said."""


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


@dataclass(frozen=True, slots=True)
class _Proposal:
    """A run that might be opened, and when it is ripe."""

    run: Open
    at: int


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
    live = facts.standing.live
    if live is None:
        return facts
    ended = replace(live, ended_at=now, outcome=dead.outcome, end_reason=dead.reason)
    standing = replace(facts.standing, live=None, recent=(ended, *facts.standing.recent), last_act_at=now)
    return replace(facts, standing=standing)


def decide_wake(facts: WakeFacts, control: Control, house: House, now: int) -> Decision:
    """The one answer. A dead run must have been closed before; `facts.standing.live` is trusted."""
    waits: list[Wait] = []
    for proposal in _proposals(facts, house, now):
        verdict = govern(Ask(proposal.run.cause, proposal.at), facts.standing, control, house, now)
        if isinstance(verdict, Wake):
            return proposal.run
        if isinstance(control, Held):
            return Rest(verdict.reason)
        waits.append(Wait(verdict.look_again_at, verdict.reason, verdict))
        if proposal.run.cause != "beat" and verdict.kind != "quiet":
            break  # what holds up her mail holds up a scheduled wake, too; and who is in the middle of a breath is answered first
    if waits:
        return min(waits, key=lambda wait: wait.until)
    return Rest(_idle_reason(facts, house.config.persona) if not isinstance(control, Held) else f"held: {control.reason}")


def _proposals(facts: WakeFacts, house: House, now: int) -> Iterator[_Proposal]:
    """One after the other, each made when it is asked for: mail and news as one run, then a scheduled wake. While it is quiet for
    everyone, operators' mail comes first and alone.
    """
    config, pending = house.config, facts.pending
    if pending and keeps_quiet(house, now):
        operators = _ripe([one for one in pending if _cause(one, config) == "operator"], config, now)
        if operators is not None:
            yield operators
        pending = tuple(one for one in pending if _cause(one, config) != "operator")
    mail = _ripe(pending, config, now)
    whole = _with_news(facts, mail, now)
    if whole is not None:
        yield whole
    if config.persona.beat and facts.home is not None and facts.standing.last_act_at is not None:
        yield _Proposal(Open((facts.home,), "beat", "a scheduled wake"), now)


def _ripe(pending: Sequence[PendingMail], config: MindConfig, now: int) -> _Proposal | None:
    """What of it is ripe; where nothing is, what will be first."""
    if not pending:
        return None
    due = [(_ripe_at(mail, config.persona, now), mail) for mail in pending]
    at = max(min([at for at, _ in due]), now)
    chosen = [mail for ripe_at, mail in due if ripe_at <= at]
    cause = min([_cause(mail, config) for mail in chosen], key=WEIGHTIEST.index)
    count = sum([mail.count for mail in chosen])
    where = f" in {len(chosen)} conversations" if len(chosen) > 1 else ""
    reason = f"{count} message{'s' if count > 1 else ''}{where} ({cause})"
    return _Proposal(Open(tuple([mail.conversation for mail in chosen]), cause, reason), at)


def _with_news(facts: WakeFacts, mail: _Proposal | None, now: int) -> _Proposal | None:
    """With work that is over, where nobody's mail is about to tell it."""
    if not facts.awaited:
        return mail
    waiting = {one.conversation for one in facts.pending}
    awaited = tuple(one for one in facts.awaited if one not in waiting)
    if not awaited:
        return mail
    if mail is not None and mail.at <= now:
        conversations = (*mail.run.conversations, *awaited)
        return _Proposal(
            replace(mail.run, conversations=conversations, reason=f"{mail.run.reason}, and work of hers that is over"), now
        )
    return _Proposal(Open(awaited, "self_run", "work of hers that is over"), now)


def _idle_reason(facts: WakeFacts, persona: PersonaConfig) -> str:
    if not persona.beat:
        return "nobody spoke to her"
    if not persona.home_room:
        return "nobody spoke to her, and without a home_room she has no scheduled wakes"
    if facts.home is None and facts.home_fault:
        return f"nobody spoke to her, and {facts.home_fault}"
    if facts.home is None:
        return f"nobody spoke to her, and she is not in her home room {persona.home_room}"
    return "she has heard nobody yet"


def _ripe_at(mail: PendingMail, persona: PersonaConfig, now: int) -> int:
    if mail.newest_at - now > _ms(persona.debounce_max_s):
        return now  # the clock stepped back since
    return min(mail.newest_at + _ms(persona.debounce_s), mail.oldest_at + _ms(persona.debounce_max_s))


def _cause(mail: PendingMail, config: MindConfig) -> Cause:
    if any(is_operator(sender, config.people) for sender in mail.senders):
        return "operator"
    return "direct" if mail.conversation.startswith("direct:") else "mention"


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
