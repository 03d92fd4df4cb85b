"""Shapes: what is said to the lease and what it answers: one JSON object per line, one question per connection (design §10).

1. Nobody says who they are: the Mind and the half are the peer's, by its unit's cgroup or its registered pid.
2. A question that is asked again after a lost connection has the same effect once: calls have ids.
3. An answer to Borrow comes with the credential as an open descriptor (SCM_RIGHTS); no secret is ever in a line.
4. Unknown fields of a question are refused: both ends are ours, and of one release.
"""

import json
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

LINE_MAX = 65_536
"""Bytes of one line."""
Id = Annotated[str, Field(min_length=1, max_length=200)]
Count = Annotated[int, Field(ge=0, le=2**53)]
RefusedKind: TypeAlias = Literal["held", "budget", "spend", "limited", "overloaded", "authentication", "payment", "fault", "peer"]


class Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Tokens(Line):
    """Of one model, as in `model.session.Usage`."""

    uncached: Count = 0
    cache_read: Count = 0
    cache_write_5m: Count = 0
    cache_write_1h: Count = 0
    output: Count = 0


class Trouble(Line):
    """Why a call came to nothing, where that holds for every call with its credential."""

    kind: Literal["limited", "overloaded", "authentication", "payment"]
    until: Count | None = None
    """ms since the epoch; None where only an operator can mend it."""
    reason: Annotated[str, Field(max_length=500)]


class Borrow(Line):
    """The credential of the peer's half."""

    ask: Literal["borrow"] = "borrow"


class Reserve(Line):
    """May this call be made, if it costs at most so much?"""

    ask: Literal["reserve"] = "reserve"
    call: Id
    run: Id
    conversation: Annotated[str, Field(max_length=400)]
    model: Annotated[str, Field(max_length=200)]
    ceiling_micro_usd: Count


class Settle(Line):
    """What it came to; nothing at all for a call that provably never left."""

    ask: Literal["settle"] = "settle"
    call: Id
    cost_micro_usd: Count
    usage: dict[str, Tokens] = {}
    """By model that really answered."""
    trouble: Trouble | None = None


class Report(Line):
    """What the CLI says that calls of a run have cost, beside ours."""

    ask: Literal["report"] = "report"
    run: Id
    ours_micro_usd: Count
    theirs_micro_usd: Count


class Lent(Line):
    """The descriptor comes with it."""

    answer: Literal["lent"] = "lent"
    kind: Literal["api-key", "oauth-token"]


class Granted(Line):
    answer: Literal["granted"] = "granted"


class Noted(Line):
    """Settled, or reported; also when it was already."""

    answer: Literal["noted"] = "noted"


class Refused(Line):
    answer: Literal["refused"] = "refused"
    kind: RefusedKind
    reason: Annotated[str, Field(max_length=1000)]
    until: Count | None = None
    """When it may be asked again; None: when an operator has changed something."""


Question: TypeAlias = Borrow | Reserve | Settle | Report
Answer: TypeAlias = Lent | Granted | Noted | Refused
_QUESTION: TypeAdapter[Question] = TypeAdapter(Annotated[Question, Field(discriminator="ask")])
_ANSWER: TypeAdapter[Answer] = TypeAdapter(Annotated[Answer, Field(discriminator="answer")])


def render_line(line: Line) -> bytes:
    return json.dumps(line.model_dump(), ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def parse_question(raw: bytes) -> Question | str:
    """The question, or what is wrong with it."""
    found: Question | str = _parse(_QUESTION, raw)
    return found


def parse_answer(raw: bytes) -> Answer | str:
    found: Answer | str = _parse(_ANSWER, raw)
    return found


def _parse(shape: TypeAdapter[Any], raw: bytes) -> Any:
    try:
        return shape.validate_json(raw)
    except ValidationError as error:
        fault = error.errors(include_input=False, include_url=False)[0]
        return f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}".removeprefix(": ")
