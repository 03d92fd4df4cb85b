"""Rule: one long text as several messages, each of which stands for itself (cases X2).

1. The sources of the parts, joined, are the text: nothing is lost, doubled or moved.
2. A part is as long as fits, cut at the best place that there is: between blocks, else between the parts of one, else between
   lines, else between words, else between characters; never inside a character as a reader sees it (an emoji of several code
   points, a letter with its accents).
3. A fence that is cut is closed, and opened again with its language: `tail` and `lead` are what is added for that. A table that is
   cut has its header again in the HTML alone (`html_lead`).
4. What fits is the caller's to measure, on what it really sends.
"""

import bisect
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mind_body.matrix.markdown import Fence, Outline, read_outline


@dataclass(frozen=True, slots=True)
class Part:
    """A slice of the text and what is put around it."""

    source: str
    lead: str = ""
    tail: str = ""
    html_lead: str = ""

    @property
    def body(self) -> str:
        return f"{self.lead}{self.source}{self.tail}"

    @property
    def markdown(self) -> str:
        """What its HTML is made from."""
        return f"{self.html_lead}{self.body}"


Fits = Callable[[Part], bool]


def split_text(text: str, fits: Fits) -> list[Part]:
    """`text` has Unix line ends only. A text that fits is one part, itself."""
    whole = Part(text)
    if fits(whole):
        return [whole]
    outline = read_outline(text)
    parts: list[Part] = []
    position = 0
    while position < len(text):
        end = _next_cut(text, position, outline, fits)
        parts.append(_part(text, position, end, outline))
        position = end
    return parts


def _next_cut(text: str, position: int, outline: Outline, fits: Fits) -> int:
    cuts = [cut for cut in outline.cuts if cut[0] > position] + [(len(text), -1)]
    fitting = _count_fitting(cuts, lambda cut: fits(_part(text, position, cut[0], outline)))
    if fitting == 0:
        return _cut_line(text, position, cuts[0][0], lambda end: fits(_part(text, position, end, outline)))
    # The latest of the best; a smaller slice of what fits has always been seen to fit, but is measured all the same.
    by_worth = sorted(cuts[:fitting], key=lambda cut: (cut[1], -cut[0]))
    return next((cut[0] for cut in by_worth if fits(_part(text, position, cut[0], outline))), cuts[fitting - 1][0])


def _count_fitting(cuts: Sequence[tuple[int, int]], fits: Callable[[tuple[int, int]], bool]) -> int:
    """How many of the cuts, from the nearest on, fit: by halving, since size grows with length."""
    return bisect.bisect_left(cuts, 1, key=lambda cut: 0 if fits(cut) else 1)


def _cut_line(text: str, position: int, line_end: int, fits: Callable[[int], bool]) -> int:
    """The latest cut inside a line that is too long; at least one character."""
    ends = range(position + 1, line_end)
    most = position + bisect.bisect_left(ends, 1, key=lambda end: 0 if fits(end) else 1)
    most = max(most, position + 1)
    space = text.rfind(" ", position + (most - position) * 3 // 4, most)
    if space > position:
        return space + 1
    return next((end for end in range(most, position, -1) if not _inside_character(text, end)), most)


_JOINER = "\u200d"
_SELECTORS = range(0xFE00, 0xFE10)
_SKIN_TONES = range(0x1F3FB, 0x1F400)
_TAGS = range(0xE0020, 0xE0080)
_FLAGS = range(0x1F1E6, 0x1F200)


def _inside_character(text: str, offset: int) -> bool:
    """Whether a cut here would part what a reader sees as one (a working subset of UAX 29)."""
    if not 0 < offset < len(text):
        return False
    before, after = text[offset - 1], text[offset]
    code = ord(after)
    if _JOINER in {before, after} or code in _SELECTORS or code in _SKIN_TONES or code in _TAGS:
        return True
    if unicodedata.category(after).startswith("M"):
        return True
    if code in _FLAGS and ord(before) in _FLAGS:
        run = offset
        while run > 0 and ord(text[run - 1]) in _FLAGS:
            run -= 1
        return (offset - run) % 2 == 1
    return False


def _part(text: str, position: int, end: int, outline: Outline) -> Part:
    source = text[position:end]
    opened, left = _fence_at(outline.fences, position), _fence_at(outline.fences, end)
    tail = "" if left is None else ("" if source.endswith("\n") else "\n") + left.shut
    header = next((table.header for table in outline.tables if table.rows <= position < table.end), "")
    return Part(source, opened.reopen if opened else "", tail, header)


def _fence_at(fences: Sequence[Fence], offset: int) -> Fence | None:
    return next((fence for fence in fences if fence.content <= offset < fence.close), None)
