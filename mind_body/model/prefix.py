"""Rule: what a Messages API request sends, as blocks that can be compared (design §6).

Tools, then system, then messages, each a flat list of blocks in canonical JSON; cache marks removed; a string counts as one text
block. Request N+1 must begin with request N: what is cached is the bytes' beginning, and only an unbroken beginning is read.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any


def canonical_blocks(request: dict[str, Any]) -> list[str]:
    """Every block in sending order; a message's role stands in each of its blocks."""
    return [json.dumps(_unmarked(block), sort_keys=True, ensure_ascii=False, separators=(",", ":")) for block in _walk(request)]


def find_break(before: Sequence[str], after: Sequence[str]) -> str | None:
    """None where `after` begins with `before`, else where and how it does not, without quoting what was sent."""
    for index, old in enumerate(before):
        if index >= len(after):
            return f"{len(before) - len(after)} of {len(before)} blocks are missing at the end"
        if old != after[index]:
            return f"block {index} of {len(before)} ({_kind(old)}) changed, {len(old)} to {len(after[index])} characters"
    return None


def fingerprint(blocks: Sequence[str]) -> str:
    """What a request sent, short enough to be kept in a cursor."""
    return f"{len(blocks)}:{_digest(blocks)}"


def fingerprint_opening(blocks: Sequence[str]) -> str:
    """All that stands before the first answer: what the requests of one thread share."""
    first = next((index for index, block in enumerate(blocks) if _kind(block) == "assistant"), len(blocks))
    return _digest(blocks[:first])


def find_break_from(before: str, after: Sequence[str]) -> str | None:
    """As `find_break`, where only the fingerprint of the earlier request is left."""
    count, _, digest = before.partition(":")
    if not count.isdigit() or _digest(after[: int(count)]) == digest:
        return None
    return f"the first {count} blocks are not the ones that were sent before the process was resumed"


def _digest(blocks: Sequence[str]) -> str:
    return hashlib.sha256("\x1e".join(blocks).encode("utf-8", "replace")).hexdigest()


def _walk(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for tool in request.get("tools") or []:
        yield {"at": "tools", "block": tool}
    for block in _blocks(request.get("system")):
        yield {"at": "system", "block": block}
    for message in request.get("messages") or []:
        for block in _blocks(message.get("content")):
            yield {"at": message.get("role"), "block": block}


def _blocks(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []


def _unmarked(place: dict[str, Any]) -> dict[str, Any]:
    return {**place, "block": _without_mark(place["block"])}


def _without_mark(block: Any) -> Any:
    """Marks stand on blocks, and on blocks inside a tool result; a key of that name in a tool's input is content."""
    if not isinstance(block, dict):
        return block
    inner = block.get("content")
    bare = {key: value for key, value in block.items() if key != "cache_control"}
    return bare | {"content": [_without_mark(one) for one in inner]} if isinstance(inner, list) else bare


def _kind(block: str) -> str:
    return str(json.loads(block).get("at"))
