"""Rule: a Messages API usage object as normalised usage.

`input_tokens` is what no cache mark covered; `cache_creation_input_tokens` is the whole written, told apart by TTL in
`cache_creation` where the server does so, and a write without TTL is a five-minute one. Foreign figures are never trusted to be
there, to be numbers, or to be positive.
"""

from collections.abc import Mapping
from typing import Any

from mind_body.model.session import Usage


def parse_usage(found: Any) -> Usage:
    """Usage of one API response; zero where it tells nothing."""
    if not isinstance(found, Mapping):
        return Usage()
    split = found.get("cache_creation")
    hour = _count(split, "ephemeral_1h_input_tokens")
    written = max(_count(found, "cache_creation_input_tokens"), hour + _count(split, "ephemeral_5m_input_tokens"))
    return Usage(
        uncached=_count(found, "input_tokens"),
        cache_read=_count(found, "cache_read_input_tokens"),
        cache_write_5m=written - hour,
        cache_write_1h=hour,
        output=_count(found, "output_tokens"),
    )


def merge_usage(start: Any, delta: Any) -> dict[str, Any]:
    """A stream tells its usage at its start and corrects it at its end; figures there replace, absent ones stay."""
    first = dict(start) if isinstance(start, Mapping) else {}
    last = {k: v for k, v in delta.items() if v is not None} if isinstance(delta, Mapping) else {}
    return first | last


def _count(found: Any, key: str) -> int:
    value = found.get(key) if isinstance(found, Mapping) else None
    return value if isinstance(value, int) and value > 0 else 0
