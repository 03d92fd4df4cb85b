"""Rule: whether a message is nothing but one of some words, and what a reaction's sign is.

A word stands alone in any case, with any punctuation, addressed to her or to nobody: "stop", "Stop!", "@ada:example.org: STOP".
Anything longer is for somebody to read ("stop the server, then go on").
"""

from collections.abc import Collection

WORD_MAX = 1000
"""Characters of a text that may be a word with a name beside it."""
_AROUND = " \t\r\n\u00a0.,:;!?…-–—*_`~\"'“”„‘’«»()"
"""What people and clients put around a word: punctuation, and the marks of Markdown."""


def lone_word(text: str, words: Collection[str], user_id: str, name: str) -> str | None:
    """Which of the words (in lower case, one blank between two) the text is. `name` is her display name, empty for none."""
    found = _bare(text)
    if found in words:
        return found
    labels = {user_id, name, user_id[1:].partition(":")[0]} - {""}
    return next((word for label in sorted(labels) if (word := _beside(found, _bare(label), words))), None)


def plain_sign(key: str) -> str:
    """An emoji without what only changes its looks: the variation selector and the colour of a skin."""
    return "".join(one for one in key.strip() if one != "\ufe0f" and not "\U0001f3fb" <= one <= "\U0001f3ff")


def _beside(text: str, label: str, words: Collection[str]) -> str | None:
    before, after = text.removeprefix(label), text.removesuffix(label)
    for rest, edge in ((before, 0), (after, -1)):
        if rest and rest != text and not rest[edge].isalnum() and _bare(rest) in words:
            return _bare(rest)
    return None


def _bare(text: str) -> str:
    return " ".join(text.strip(_AROUND + "@").casefold().split()) if len(text) <= WORD_MAX else text
