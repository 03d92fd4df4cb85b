"""Rule: which piece of work is claimed now, and what becomes of a proposal (design §6, §9).

In this order:

1. Without a Self, and without work, there is Rest.
2. The governor is asked as for every wake: held, one run of a Self at a time, the pauses of the Self, the caps of spending. Its
   back-off is not: each piece of work has its own.
3. The oldest work whose own back-off is over, and whose conversation may cost more, is claimed; what must wait holds up no other.
   What its operators are asked about (see `breaker`), and what belongs to a closed campaign, is passed over.
4. A run that came to nothing is tried again after a wait that doubles. A flush is something; a limit, a hold and a spent budget are
   passed over in the count. Work whose last run spent its budget waits for a cadence of the dial: a cap that is renewed at once is
   none.
5. A brief is confirmed by who asked for it, by ✅ or 👍, while that person may start work; ❌ by them or an operator drops it, and
   outweighs. Nobody else's reaction counts. It waits a day at most.
6. A clock that stepped back makes no wait longer than twice its length.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from mind_body.control.effective import Control, Dial, Held
from mind_body.control.govern import Ask, House, Skip, backoff_ms, find_apart, govern
from mind_body.control.people import is_operator, may_start
from mind_body.heartbeat.breaker import count_fruitless, find_hold
from mind_body.heartbeat.wake import Rest, Wait
from mind_body.mind.records import Run
from mind_body.mind.work_records import FollowUp, Handoff, OpenWork, Progress, Proposal, Reaction, Steer, WorkFacts
from mind_body.settings import HostConfig, PeopleConfig

TOLD_MAX, TOLD_CHARS = 8, 1000
"""Steering messages that a hand-off from the record repeats, and characters of each."""
CONFIRM_MS = 24 * 3_600_000
YES = ("✅", "👍")
NO = ("❌", "👎")


@dataclass(frozen=True, slots=True)
class Claim:
    """Open a run for this piece of work."""

    follow_up: FollowUp
    reason: str


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The asker wants it."""


@dataclass(frozen=True, slots=True)
class Refused:
    """It is dropped."""

    why: str


@dataclass(frozen=True, slots=True)
class Asked:
    """Nobody who counts has answered; it is dropped at `until`."""

    until: int


Decision: TypeAlias = Claim | Wait | Rest
Answer: TypeAlias = Confirmed | Refused | Asked


def decide_claim(facts: WorkFacts, control: Control, house: House, now: int) -> Decision:
    """The one answer. A dead run must have been buried before."""
    if not facts.open or not house.config.self.enabled:
        return Rest("her Self is not enabled" if facts.open else "there is no work")
    verdict = govern(Ask("work", now), replace(facts.standing, recent=()), control, house, now)
    if isinstance(control, Held):
        return Rest(f"held: {control.reason}")
    if isinstance(verdict, Skip):
        return Wait(verdict.look_again_at, verdict.reason, verdict)
    return _pick(facts.open, control.dial, house.host, find_apart(facts.standing, house, now), now)


def judge_proposal(proposal: Proposal, reactions: Sequence[Reaction], people: PeopleConfig, now: int) -> Answer:
    """What the reactions to the question come to."""
    asker = proposal.follow_up.asked_by
    if not may_start(asker, people):
        return Refused(f"{asker} may not start work any more")
    found = [one for one in reactions if one.target == proposal.event_id and one.room_id == proposal.follow_up.room_id]
    for one in found:
        if _sign(one.key) in NO and (one.sender == asker or is_operator(one.sender, people)):
            return Refused(f"{one.sender} declined it")
    if any(_sign(one.key) in YES and one.sender == asker for one in found):
        return Confirmed()
    opened = proposal.follow_up.opened_at
    if now - opened >= CONFIRM_MS:
        return Refused("nobody confirmed it within a day")
    return Asked(min(opened, now) + CONFIRM_MS)


def make_handoff(  # noqa: PLR0917 - all that is known of it
    run: Run, follow_up: FollowUp, progress: Progress | None, told: Sequence[Steer], reason: str, now: int
) -> Handoff:
    """What the record knows of a run that could not say anything any more."""
    lines = [f"The last run on this work broke off and left no hand-off of its own: {reason}."]
    if progress is None:
        lines.append("It is not known how far it came. Look at the state of the files before anything else.")
    else:
        lines.append(f"What it was last seen doing: {progress.doing}")
        lines.append("What it had begun may be half done. Look at the state of the files before anything else.")
    if told:
        lines.append("What people added to the work while it ran, the last of it:")
        lines += [f"{one.sender}: {one.text[:TOLD_CHARS]}" for one in told[-TOLD_MAX:]]
    return Handoff(run.id, follow_up.workspace, "\n".join(lines), "record", cut=False, at=now)


def _pick(works: Sequence[OpenWork], dial: Dial, host: HostConfig, held: Mapping[str, Skip], now: int) -> Claim | Wait | Rest:
    waits: list[Wait] = []
    holds: list[str] = []
    for work in works:
        hold, wait, skip = find_hold(work), _wait_of(work, dial, host, now), held.get(work.follow_up.conversation)
        if hold is not None:
            holds.append(hold)
        elif skip is not None:
            waits.append(Wait(skip.look_again_at, skip.reason))
        elif wait is not None:
            waits.append(wait)
        else:
            tries = count_fruitless(work.past)
            return Claim(work.follow_up, f"work that {work.follow_up.asked_by} asked for" + (f", try {tries + 1}" if tries else ""))
    return min(waits, key=lambda wait: wait.until) if waits else Rest("; ".join(dict.fromkeys(holds)))


def _wait_of(work: OpenWork, dial: Dial, host: HostConfig, now: int) -> Wait | None:
    last = work.past[0] if work.past else None
    if last is None or last.ended_at is None:
        return None
    strikes = count_fruitless(work.past)
    length = backoff_ms(strikes, host)
    reason = "the last run came to nothing" if strikes == 1 else f"the last {strikes} runs came to nothing"
    if last.outcome == "budget":
        length, reason = round(dial.cadence_s * 1000), "the last run spent its budget"
    if abs(now - last.ended_at) >= length:
        return None
    return Wait(last.ended_at + length, reason)


def _sign(key: str) -> str:
    """An emoji without what only changes its looks: the variation selector and the colour of a skin."""
    return "".join(one for one in key if one != "\ufe0f" and not "\U0001f3fb" <= one <= "\U0001f3ff")
