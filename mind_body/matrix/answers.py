"""Rule: what an HTTP answer of a homeserver means.

1. What sending again may change is MatrixUnreachable or MatrixLimited; 401 is MatrixUnauthorised; any other 4xx in the homeserver's
   own words is MatrixRefused.
2. A 4xx that is not in Matrix's words is some proxy's page while the homeserver is away: unreachable, except 413, which stays true.
3. A redirect is not followed: the token is for the server that it was given for.
"""

import contextlib
import json
from collections.abc import Mapping
from typing import Any

from mind_body.errors import MatrixLimited, MatrixRefused, MatrixUnauthorised, MatrixUnreachable

LIMITED_DEFAULT_MS = 5_000
"""Where a 429 does not say how long; Synapse always does."""
LIMITED_MAX_MS = 3_600_000
"""No wait is longer: a homeserver that asks for more is asked again, since one that is mistaken would silence her for years."""


def read_answer(status: int, headers: Mapping[str, str], content: bytes, homeserver: str, what: str) -> dict[str, Any]:
    """The JSON object of a good answer, or the MatrixError that a bad one means."""
    found: object = None
    with contextlib.suppress(ValueError, RecursionError):
        found = json.loads(content)
    answer = found if isinstance(found, dict) else None
    if 200 <= status < 300:
        if answer is None:
            raise MatrixUnreachable(f"{homeserver} answered {status} to {what}, but not with a JSON object")
        return answer
    code = str((answer or {}).get("errcode") or "")
    words = one_line(str((answer or {}).get("error") or ""))
    sentence = f"{homeserver} answered {' '.join(filter(None, (str(status), code)))} to {what}{': ' + words if words else ''}"
    if status == 429:
        raise MatrixLimited(sentence, _retry_after_ms(answer or {}, headers))
    if status == 413:
        raise MatrixRefused(sentence, code or "M_TOO_LARGE")
    if not 400 <= status < 500 or status == 408 or not code:
        raise MatrixUnreachable(sentence)
    if status == 401:
        raise MatrixUnauthorised(sentence)
    raise MatrixRefused(sentence, code)


def _retry_after_ms(answer: Mapping[str, Any], headers: Mapping[str, str]) -> int:
    said = answer.get("retry_after_ms")
    if isinstance(said, (int, float)) and not isinstance(said, bool) and 0 <= said < 1e12:
        return min(int(said), LIMITED_MAX_MS)
    header = headers.get("Retry-After", "")
    return min(int(header) * 1000, LIMITED_MAX_MS) if header.isdigit() and len(header) < 10 else LIMITED_DEFAULT_MS


def one_line(text: str) -> str:
    return " ".join(text.split())[:200]
