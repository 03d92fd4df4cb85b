"""Rule: what all acts of a reply have in common: their shapes, their check, their handles."""

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

MESSAGE_PATTERN = r"^m[1-9][0-9]{0,14}$"
NULLABLE_MESSAGE: dict[str, Any] = {"anyOf": [{"type": "string", "pattern": MESSAGE_PATTERN}, {"type": "null"}]}


class Act(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


A = TypeVar("A", bound=Act)


def checked(shape: type[A], value: object) -> A | str:
    """The act, or what is wrong with it; never a word of the answer."""
    try:
        return shape.model_validate(value)
    except ValidationError as error:
        fault = error.errors(include_input=False, include_url=False)[0]
        return f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}".removeprefix(": ")


def message_number(handle: object) -> int | None:
    """The number of a handle like m12."""
    if isinstance(handle, str) and handle[:1] == "m" and handle[1:].isascii() and handle[1:].isdigit() and len(handle) <= 16:
        return int(handle[1:])
    return None
