"""Rule: how much she wants to speak by herself, and how far apart scheduled wakes should be: `urgency` and `tempo` (design §6, §9).

1. Each is admitted on its own. One that cannot be read is dropped with its reason, and what she said before holds.
2. `tempo` null is a vote that is withdrawn. What is not there at all changes nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from mind_body.mind.asking_records import Pulse
from mind_body.persona.acts import Act, checked

URGENCY_MAX = 1000
TEMPO_MIN_S, TEMPO_MAX_S = 60, 86_400
PULSE_ACTS = ("urgency", "tempo")
PULSE_SCHEMAS: dict[str, dict[str, Any]] = {
    "urgency": {"type": "integer", "minimum": 0, "maximum": URGENCY_MAX},
    "tempo": {"anyOf": [{"type": "integer", "minimum": TEMPO_MIN_S, "maximum": TEMPO_MAX_S}, {"type": "null"}]},
}


class _Urgency(Act):
    urgency: Annotated[int, Field(ge=0, le=URGENCY_MAX)]


class _Tempo(Act):
    tempo: Annotated[int, Field(ge=TEMPO_MIN_S, le=TEMPO_MAX_S)] | None


@dataclass(frozen=True, slots=True)
class Wish:
    """What an answer says of it."""

    urgency: int | None = None
    """None where it says nothing that can be used."""
    tempo_s: int | None = None
    voted: bool = False
    """Whether it says anything about the tempo: None is an answer, too."""


NO_WISH = Wish()


def read_wish(answer: Mapping[str, Any], acts: Sequence[str]) -> tuple[Wish, list[str]]:
    """What an answer wishes for, and what was dropped, with its reason."""
    faults: list[str] = []
    urgency, tempo = _read(_Urgency, "urgency", answer, acts, faults), _read(_Tempo, "tempo", answer, acts, faults)
    return Wish(urgency and urgency.urgency, tempo and tempo.tempo, tempo is not None), faults


def pulse_of(wish: Wish, before: Pulse | None, turn_id: str, now: int) -> Pulse | None:
    """The pulse after this turn; None where nothing is wished for."""
    if wish == NO_WISH:
        return None
    urgency = wish.urgency if wish.urgency is not None else before.urgency if before else 0
    return Pulse(turn_id, urgency, wish.tempo_s if wish.voted else before.tempo_s if before else None, now)


def _read(shape: type[Any], name: str, answer: Mapping[str, Any], acts: Sequence[str], faults: list[str]) -> Any:
    if name not in answer:
        return None
    if name not in acts:
        faults.append(f"`{name}` is not among her acts")
        return None
    found = checked(shape, {name: answer[name]})
    if isinstance(found, str):
        faults.append(f"`{name}` {found.partition(': ')[2] or found}")
        return None
    return found
