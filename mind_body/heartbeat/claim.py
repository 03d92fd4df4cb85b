"""Rule: which piece of work is claimed now, what becomes of a proposal, and when it is enough (design §6, §9).

In this order:

1. One run of a Self at a time: while one is live, Wait. Without a Self, and held, there is Rest.
2. A pause of the Self's that is not over is Wait until its end.
3. The oldest work whose own back-off is over is claimed; work that must wait holds up no other.
4. A run that came to nothing is tried again after a wait that doubles; work whose last three did is dropped. A flush is something;
   a limit, a hold and a spent budget are passed over in the count. Work whose last run spent its budget waits for a cadence of the
   dial: a cap that is renewed at once is none.
5. A brief is confirmed by who asked for it, by ✅ or 👍, while that person may start work; ❌ by them or an operator drops it, and
   outweighs. Nobody else's reaction counts. It waits a day at most.
6. A clock that stepped back makes no wait longer than twice its length.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from mind_body.control.effective import Control, Dial, Held
from mind_body.control.people import is_operator, may_start
from mind_body.heartbeat.wake import Rest, Wait, backoff_ms
from mind_body.mind.records import Run
from mind_body.mind.work_records import FollowUp, Handoff, OpenWork, Progress, Proposal, Reaction, Steer, WorkFacts
from mind_body.settings import HostConfig, MindConfig, PeopleConfig

NOTHING = frozenset({"dead", "failed", "no-result", "killed", "died", "refused", "interrupted"})
"""Outcomes of runs that came to nothing. Interrupted and open again: it stalled; what a person stopped is over."""
PASSED_OVER = frozenset({"held", "limited", "budget"})
"""Outcomes that say nothing against the next run."""
TRIES_MAX = 3
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


def decide_claim(facts: WorkFacts, control: Control, config: MindConfig, host: HostConfig, now: int) -> Decision:
    """The one answer. A dead run must have been buried, and hopeless work dropped, before."""
    if facts.live is not None:
        return Wait(None, f"run {facts.live.id} is {'held' if facts.live.holder else 'open'}")
    if not facts.open or not config.self.enabled:
        return Rest("her Self is not enabled" if facts.open else "there is no work")
    if isinstance(control, Held):
        return Rest(f"held: {control.reason}")
    pause = max((one for one in facts.pauses if one.until > now), key=lambda one: one.until, default=None)
    if pause is not None:
        return Wait(pause.until, f"paused ({pause.cause}): {pause.reason}")
    return _pick(facts.open, control.dial, host, now)


def pick_hopeless(facts: WorkFacts) -> list[OpenWork]:
    """Work that is not tried any more."""
    return [work for work in facts.open if count_fruitless(work.past) >= TRIES_MAX]


def count_fruitless(past: Sequence[Run]) -> int:
    """How many of the newest runs in a row came to nothing."""
    count = 0
    for run in past:
        if run.outcome in NOTHING:
            count += 1
        elif run.outcome not in PASSED_OVER:
            break
    return count


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


def _pick(works: Sequence[OpenWork], dial: Dial, host: HostConfig, now: int) -> Claim | Wait:
    waits: list[Wait] = []
    for work in works:
        wait = _wait_of(work, dial, host, now)
        if wait is None:
            tries = count_fruitless(work.past)
            return Claim(work.follow_up, f"work that {work.follow_up.asked_by} asked for" + (f", try {tries + 1}" if tries else ""))
        waits.append(wait)
    return min(waits, key=lambda wait: wait.until or 0)


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
