"""Door: one finding of `mind doctor`, and a look that may fail by one of our errors."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import trio

from mind_body.errors import MindBodyError

LOOK_S = 30.0


@dataclass(frozen=True, slots=True)
class Check:
    """`fix` is empty where nothing is to be done."""

    name: str
    ok: bool
    detail: str
    fix: str = ""


async def look(name: str, see: Callable[[], Awaitable[str]], fix: str) -> Check:
    """What `see` saw; an error's sentence, and what mends it, where it could not."""
    try:
        with trio.fail_after(LOOK_S):
            return Check(name, ok=True, detail=await see())
    except MindBodyError as error:
        return Check(name, ok=False, detail=str(error), fix=fix)
    except trio.TooSlowError:
        return Check(name, ok=False, detail=f"no answer within {LOOK_S:g} s", fix=fix)
