"""Rule: Markdown to Matrix HTML, and where Markdown may be cut.

1. Only tags and attributes that the Matrix specification allows (`m.room.message`, "formatted body"), and only its link schemes.
   HTML in the source is text. Pictures would need an `mxc:` address, so an image is shown as the link that it is.
2. A line break is a line break, as in every chat; CommonMark would run the lines together.
3. A cut is an offset in the source. The lower its cost, the better a reader bears it: between blocks, between the parts of a block
   (list items), between lines. There is none beside a fence's or a table's opening lines, where one half would be empty.
"""

import re
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.token import Token

_BLOCK_TAGS = ("p", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "ul", "ol", "li", "pre", "hr")
_TABLE_TAGS = ("table", "thead", "tbody", "tr", "th", "td")
ALLOWED_TAGS = frozenset((*_BLOCK_TAGS, *_TABLE_TAGS, "code", "em", "strong", "s", "a", "br"))
"""What this module may write; all are on the specification's list."""
_SCHEMES = re.compile(r"(?:https?|ftp|mailto|magnet):", re.IGNORECASE)
_ATTRIBUTES = {"a": {"href"}, "ol": {"start"}, "code": {"class"}}
HEADER_MAX, LANGUAGE_MAX = 1000, 60
"""Characters that are worth repeating in every part of a table or a fence."""
BETWEEN_BLOCKS, BETWEEN_PARTS, BETWEEN_LINES = 0, 1, 2


class _Markdown(MarkdownIt):
    def validateLink(self, url: str) -> bool:  # noqa: N802 - the library's name
        return _SCHEMES.match(url) is not None


_markdown = _Markdown("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"]).disable("image")


@dataclass(frozen=True, slots=True)
class Fence:
    """A fenced code block, by offsets in the source."""

    start: int
    content: int
    """Where its first line of code begins."""
    close: int
    """Where its closing line begins, or its end where it has none."""
    reopen: str
    """The line that opens the rest of it in another message, with its language."""
    shut: str
    """The line that closes it."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table, by offsets; `header` is repeated in the HTML of its later parts."""

    start: int
    rows: int
    end: int
    header: str


@dataclass(frozen=True, slots=True)
class Outline:
    """Where a source may be cut, and what stands open there."""

    cuts: tuple[tuple[int, int], ...]
    """(offset, cost), rising."""
    fences: tuple[Fence, ...]
    tables: tuple[Table, ...]


def render_html(source: str) -> str:
    """Well-formed HTML. A single paragraph comes without its `<p>`, as clients write it."""
    tokens = _markdown.parse(source)
    _keep_allowed(tokens)
    if [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]:
        tokens = tokens[1:2]
    return str(_markdown.renderer.render(tokens, _markdown.options, {})).strip("\n")


def read_outline(source: str) -> Outline:
    """`source` has Unix line ends only."""
    lines = source.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    starts[-1] = len(source)
    costs = dict.fromkeys(starts[1:-1], BETWEEN_LINES)
    fences: list[Fence] = []
    tables: list[Table] = []
    for token in _markdown.parse(source):
        if token.map is None or token.nesting < 0:
            continue
        first, after = token.map
        if starts[first] in costs:
            costs[starts[first]] = min(costs[starts[first]], BETWEEN_BLOCKS if token.level == 0 else BETWEEN_PARTS)
        if token.type == "fence":
            fences.append(_fence(token, lines, starts))
        if token.type == "table_open" and token.level == 0:
            rows = starts[min(first + 2, after)]
            header = source[starts[first] : rows]
            tables.append(Table(starts[first], rows, starts[after], header if len(header) <= HEADER_MAX else ""))
    barred = {f.content for f in fences} | {f.close for f in fences} | {t.rows for t in tables}
    barred |= {offset for t in tables for offset in costs if t.start < offset < t.rows}
    kept = ((offset, cost) for offset, cost in sorted(costs.items()) if offset not in barred or cost == BETWEEN_BLOCKS)
    return Outline(tuple(kept), tuple(fences), tuple(tables))


def _fence(token: Token, lines: list[str], starts: list[int]) -> Fence:
    assert token.map is not None
    first, after = token.map
    opening, last = lines[first], lines[after - 1]
    before = opening[: opening.index(token.markup)]
    # In a quote every line carries the quote's mark; in a list only the indentation lasts, and not into another message.
    margin = re.sub(r"[^>\s]", " ", before)
    closed = after - 1 > first and set(last.replace(">", "").strip()) == {token.markup[0]}
    return Fence(
        starts[first],
        starts[min(first + 1, after)],
        starts[after - 1] if closed else starts[after],
        f"{margin if '>' in margin else ''}{token.markup}{''.join(token.info.split()[:1])[:LANGUAGE_MAX]}\n",
        f"{margin}{token.markup}",
    )


def _keep_allowed(tokens: list[Token]) -> None:
    for token in tokens:
        allowed = _ATTRIBUTES.get(token.tag, set())
        token.attrs = {key: value for key, value in token.attrs.items() if key in allowed}
        _keep_allowed(token.children or [])
