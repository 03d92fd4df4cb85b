"""Rule: work that she asks for: `start_self_run` and `tell_self` (design §6).

1. `asked_in` names a message of this batch. What its sender may do decides, never what anybody says about it.
2. Where words of people who may not start work have been in her session since it began, a brief waits until its asker has confirmed
   it by a reaction. It is shown as it will be given.
3. In such a session nothing that she has worded is told to a running Self: it gets the asker's own message instead.
4. The brief is given on as it is, without what is invisible and acts.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from mind_body.control.people import may_start, may_steer
from mind_body.matrix.outside import clean
from mind_body.mind.changes import MISSED
from mind_body.mind.records import Heard
from mind_body.persona.acts import MESSAGE_PATTERN, Act, checked, message_number
from mind_body.persona.pulse_acts import PULSE_ACTS
from mind_body.settings import WORKSPACE_PATTERN, MindConfig, PeopleConfig

BRIEF_MAX = 1000
"""Characters."""
TELL_MAX = 4000
DEFAULT_WORKSPACE = "main"
_CAMPAIGN = r"^[a-z0-9][a-z0-9-]{0,63}$"
WORK_ACTS = ("start_self_run", "tell_self")


def _nullable(required: Sequence[str], properties: Mapping[str, Any]) -> dict[str, Any]:
    shape = {"type": "object", "additionalProperties": False, "required": list(required), "properties": dict(properties)}
    return {"anyOf": [shape, {"type": "null"}]}


_OR_NULL: dict[str, Any] = {"type": "null"}
_ASKED: dict[str, Any] = {"type": "string", "pattern": MESSAGE_PATTERN}
WORK_SCHEMAS: dict[str, dict[str, Any]] = {
    "start_self_run": _nullable(
        ("brief", "asked_in", "repo", "campaign"),
        {
            "brief": {"type": "string", "minLength": 1, "maxLength": BRIEF_MAX},
            "asked_in": _ASKED,
            "repo": {"anyOf": [{"type": "string", "pattern": WORKSPACE_PATTERN}, _OR_NULL]},
            "campaign": {"anyOf": [{"type": "string", "pattern": _CAMPAIGN}, _OR_NULL]},
        },
    ),
    "tell_self": _nullable(
        ("text", "asked_in"), {"text": {"type": "string", "minLength": 1, "maxLength": TELL_MAX}, "asked_in": _ASKED}
    ),
}


class _Start(Act):
    brief: Annotated[str, Field(min_length=1, max_length=BRIEF_MAX)]
    asked_in: Annotated[str, Field(pattern=MESSAGE_PATTERN)]
    repo: Annotated[str, Field(pattern=WORKSPACE_PATTERN)] | None = None
    campaign: Annotated[str, Field(pattern=_CAMPAIGN)] | None = None


class _Tell(Act):
    text: Annotated[str, Field(min_length=1, max_length=TELL_MAX)]
    asked_in: Annotated[str, Field(pattern=MESSAGE_PATTERN)]


@dataclass(frozen=True, slots=True)
class Start:
    """A piece of work that she wants her Self to do."""

    brief: str = field(repr=False)
    asked: Heard
    """The message of this batch that asked for it."""
    workspace: str
    campaign: str | None


@dataclass(frozen=True, slots=True)
class Tell:
    """A message for her Self at work."""

    text: str = field(repr=False)
    asked: Heard


def acts_of(config: MindConfig) -> tuple[str, ...]:
    """The fields of a reply that a Mind may use: work is hers only where she has a Self, a pulse where she has scheduled wakes."""
    without = (*(() if config.self.enabled else WORK_ACTS), *(() if config.persona.beat else PULSE_ACTS))
    return tuple(act for act in config.persona.acts if act not in without)


def read_work(answer: Mapping[str, Any], acts: Sequence[str], mail: Sequence[Heard]) -> tuple[Start | None, Tell | None, list[str]]:
    """What an answer asks her Self for, against the batch; and what was dropped, with its reason."""
    faults: list[str] = []
    start, tell = _read(_Start, "start_self_run", answer, acts, faults), _read(_Tell, "tell_self", answer, acts, faults)
    began = told = None
    if start is not None and (asked := _asked("start_self_run", start.asked_in, start.brief, mail, faults)):
        began = Start(clean(start.brief).strip(), asked, start.repo or DEFAULT_WORKSPACE, start.campaign)
    if tell is not None and (asked := _asked("tell_self", tell.asked_in, tell.text, mail, faults)):
        told = Tell(clean(tell.text).strip(), asked)
    return began, told, faults


def judge_start(start: Start, people: PeopleConfig) -> str | None:
    """Why this work is not admitted; None where it is."""
    if may_start(start.asked.sender, people):
        return None
    return f"`start_self_run`: {start.asked.sender} may not start work"


def judge_tell(tell: Tell, people: PeopleConfig) -> str | None:
    """Why this message is not admitted; None where it is."""
    if may_steer(tell.asked.sender, people):
        return None
    return f"`tell_self`: {tell.asked.sender} may not steer work"


def is_trusted(senders: Collection[str | None], people: PeopleConfig, me: str) -> bool:
    """Whether all whose words are in a session may start work, or are she herself."""
    return all(sender is not None and (sender == me or may_start(sender, people)) for sender in senders)


def named_in(rehydration: str) -> list[int]:
    """The heard rows whose words a rehydration carries. Their heads are ours; every line of outside text leads with its mark."""
    return [int(found) for found in re.findall(r"^\[m([0-9]{1,15}) ", rehydration, re.MULTILINE)]


def _read(shape: type[Any], name: str, answer: Mapping[str, Any], acts: Sequence[str], faults: list[str]) -> Any:
    value = answer.get(name)
    if value is None:
        return None
    if name not in acts:
        faults.append(f"`{name}` is not among her acts")
        return None
    found = checked(shape, value)
    if isinstance(found, str):
        faults.append(f"`{name}` {found}")
        return None
    return found


def _asked(name: str, handle: str, text: str, mail: Sequence[Heard], faults: list[str]) -> Heard | None:
    if not clean(text).strip():
        faults.append(f"`{name}` says nothing")
        return None
    number = message_number(handle)
    found = next((heard for heard in mail if heard.seq == number and heard.kind != MISSED), None)
    if found is None:
        faults.append(f"`{name}` names no message of this batch")
    return found
