"""Rule: how text from outside is let into a prompt (design §6).

1. Every line of it is led by "| ", and nothing of ours ever begins so: whatever it says, it stays inside, and the first line
   without the mark is ours. Nothing needs escaping, so code arrives as it was typed.
2. What breaks a line anywhere in Unicode breaks it here. Control, direction and other invisible characters are gone; the two
   joiners stay, because scripts and emoji need them. A lone surrogate becomes U+FFFD.
3. In a line of ours outside text stands only as a JSON string (names) or percent-encoded (ids): one line, one pair of quotes.
"""

import json
import re
import unicodedata

MARK = "| "
_BREAKS = re.compile("\r\n|[\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029]")
_JOINERS = "\u200c\u200d"
_ID_SAFE = re.compile(r"[^A-Za-z0-9@:._=/+~!#$*\[\]-]")
_FILLERS = frozenset("\u115f\u1160\u3164\uffa0\u034f\u17b4\u17b5")
"""Letters and marks by category, and invisible all the same."""
_SHOWN_FORMATS = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2")
"""Format characters by category that are drawn: Arabic and Syriac number signs."""
NAME_MAX = 80
"""Characters of a display or room name that are shown."""


def clean(text: str) -> str:
    """Outside text with the newline as its only break, and nothing invisible that acts."""
    return "".join(_kept(character) for character in _BREAKS.sub("\n", text))


def quote(text: str) -> str:
    """Outside text as lines that cannot end their own frame."""
    return "\n".join(MARK + line for line in clean(text).split("\n"))


def quoted_name(name: str) -> str:
    """A name as one JSON string."""
    words = " ".join(clean(name).split())
    short = words if len(words) <= NAME_MAX else words[:NAME_MAX] + "…"
    return json.dumps(short, ensure_ascii=False)


def plain_name(name: str) -> str:
    """A name for the compact layout: letters, digits and a little beside, so that no line of it can pass for one of ours."""
    words = "".join(character if character.isalnum() or character in "-_.' " else " " for character in clean(name))
    return " ".join(words.split())[:NAME_MAX].strip()


def safe_id(matrix_id: str) -> str:
    """A Matrix id as one word, with everything unusual percent-encoded."""
    return _ID_SAFE.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "replace")), matrix_id)


def _kept(character: str) -> str:
    if character in {"\n", "\t"} or character in _JOINERS or character in _SHOWN_FORMATS:
        return character
    if character in _FILLERS or "\ufe00" <= character <= "\ufe0e" or "\U000e0100" <= character <= "\U000e01ef":
        return ""
    category = unicodedata.category(character)
    if category == "Cs":
        return "\ufffd"
    return "" if category in {"Cc", "Cf", "Zl", "Zp"} else character
