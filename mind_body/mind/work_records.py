"""Shapes: the records of work: what was asked for, what a run leaves, and what reaches it while it runs (design §4, §8)."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, TypeAlias

from mind_body.mind.asking_records import Question
from mind_body.mind.records import Run
from mind_body.mind.wake_facts import Standing

SELF_PAUSE = "self-"
"""How the cause of a pause begins that holds off her Self and not her Persona: `self-limited`, `self-authentication`, …"""


class FollowUpState(StrEnum):
    PROPOSED = "proposed"
    """It waits for the asker to confirm the brief."""
    OPEN = "open"
    CLAIMED = "claimed"
    """A run works on it."""
    DONE = "done"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class NewFollowUp:
    """A piece of work about to be admitted."""

    conversation: str
    """Where it was asked for: its runs and results appear there and nowhere else."""
    room_id: str
    asked_in: str | None
    """Event id of the message that asked; None for the command line."""
    asked_by: str
    brief: str = field(repr=False)
    """Verbatim, at most 1,000 characters."""
    workspace: str
    campaign: str | None = None
    continues: str | None = None
    """The follow-up whose unfinished work this is."""
    thread_said: str | None = None
    thread_root: str | None = None


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A piece of work: proposed → open → claimed → done or dropped."""

    id: str
    conversation: str
    room_id: str
    asked_in: str | None
    asked_by: str
    brief: str = field(repr=False)
    workspace: str
    campaign: str | None
    state: FollowUpState
    confirm_said: str | None
    """The said row that asks for the confirmation."""
    run_id: str | None
    """The run that claimed it last."""
    continues: str | None
    thread_said: str | None
    """The said row that is the root of its thread; known from the first claim on, queued by the Self."""
    thread_root: str | None
    """The same as an event id, where that is known already."""
    opened_at: int
    ended_at: int | None
    result: str | None = field(repr=False)
    why: str | None
    """Why it was dropped, or where its work went on."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A follow-up that waits for its confirmation, and the event that people can react to, once it was sent."""

    follow_up: FollowUp
    event_id: str | None


@dataclass(frozen=True, slots=True)
class OpenWork:
    """A follow-up that waits for a run, with what came of it so far."""

    follow_up: FollowUp
    past: tuple[Run, ...]
    """Its ended runs, and those of the work that it continues, newest first."""
    about: str = ""
    """What the operators are asked about: `campaign:<slug>`, or `work:<id>` of the follow-up that all this goes on from."""
    campaign_past: tuple[Run, ...] = ()
    """Ended runs of all work of its campaign, newest first."""
    campaign_closed: bool = False
    question_open: bool = False
    """The operators have been asked about it, and nobody has answered yet."""
    answered: Question | None = None
    """The newest question about it that was answered."""
    reopened_after: str | None = None
    """The newest run of the item when an operator last reopened it; None where none did, or before any run."""

    @property
    def item_past(self) -> tuple[Run, ...]:
        """The runs that the breaker counts."""
        return self.campaign_past if self.about.startswith("campaign:") else self.past


@dataclass(frozen=True, slots=True)
class WorkFacts:
    """Everything in the mind that claiming depends on."""

    open: tuple[OpenWork, ...]
    """The oldest first."""
    proposals: tuple[Proposal, ...]
    reactions: tuple["Reaction", ...]
    """To the events that ask for a confirmation."""
    standing: Standing
    """What the governor asks of her Self; its pauses without `self-`."""

    @property
    def live(self) -> Run | None:
        """The run of her Self that has not ended."""
        return self.standing.live


@dataclass(frozen=True, slots=True)
class Handoff:
    """What the next session of this work is rehydrated from; one per run, written once."""

    run_id: str
    workspace: str
    text: str = field(repr=False)
    origin: Literal["model", "record"]
    """The answer to the flush, or put together from what is on record."""
    cut: bool
    at: int


@dataclass(frozen=True, slots=True)
class Steer:
    """A message for a running Self."""

    id: str
    run_id: str
    event_id: str | None
    """None for what her Persona tells it."""
    kind: Literal["steer", "stop"]
    sender: str
    text: str = field(repr=False)
    at: int
    state: Literal["queued", "given", "dropped"]


@dataclass(frozen=True, slots=True)
class Reaction:
    """Somebody's reaction to a message of hers."""

    event_id: str
    room_id: str
    target: str
    """Event id of the message."""
    sender: str
    key: str
    at: int


@dataclass(frozen=True, slots=True)
class Progress:
    """What a run is doing: telemetry, the newest alone, never summed."""

    run_id: str
    doing: str
    prefix_tokens: int
    ceiling_tokens: int
    window_tokens: int
    cost_micro_usd: int
    turns: int
    at: int


Fate: TypeAlias = Literal["done", "continue", "again"]
"""What becomes of the work of a run that ended: it is over; it goes on as a new follow-up; it is open again, since the run came to
nothing."""
FATES: dict[str, Fate] = {
    "result": "done",
    "interrupted": "done",
    "flushed": "continue",
    "limited": "continue",
    "held": "continue",
    "budget": "continue",
    "spend": "continue",
    "overloaded": "continue",
    "authentication": "again",
    "payment": "again",
    "no-result": "again",
    "killed": "again",
    "died": "again",
    "refused": "again",
}
"""By outcome, for every run that nobody asked to stop."""


@dataclass(frozen=True, slots=True)
class SelfRunEnd:
    """How a run of a Self ended."""

    outcome: str
    reason: str
    result: str | None = field(repr=False)
    """Whole; its first 800 bytes are kept."""
    fate: Fate


@dataclass(frozen=True, slots=True)
class Ended:
    """What the end of a run led to."""

    follow_up: FollowUp | None
    """What goes on or is open again; None where the work is over."""
    returned: int
    """Messages that it was not given; those of people are mail of their room now."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """The provider shortened a session by itself (design §7): provenance, never memory."""

    session_id: str
    run_id: str
    cause: str
    """`auto` or `manual`, as the CLI tells it."""
    before_tokens: int
    after_tokens: int | None
    at: int


@dataclass(frozen=True, slots=True)
class LiveThread:
    """The thread of the run that is live: what is written there is for the running Self alone."""

    run_id: str
    conversation: str
    room_id: str
    root: str
    """Event id."""


@dataclass(frozen=True, slots=True)
class RunNews:
    """A run of hers that a conversation is to hear of."""

    run: Run
    follow_up: FollowUp
    told: Literal["started", "ended"]
    asked_seq: int | None = None
    """The heard row that asked for it."""
    goes_on: bool = False
    """It ended, and its work is taken up again by itself."""
    lost: int = 0
    """Turns that were to tell this and were lost."""


@dataclass(frozen=True, slots=True)
class WorkReport:
    """One run, with what it works on, how far it is, and what it leaves."""

    run: Run
    follow_up: FollowUp | None
    progress: Progress | None
    handoff: Handoff | None
    steers: tuple[tuple[str, str, str], ...]
    """Kind, sender, state: in the order in which they came."""
