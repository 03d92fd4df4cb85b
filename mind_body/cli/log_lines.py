"""Rule: what `mind log` asks journalctl for, and how a line of the journal looks to people."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mind_body.journal_kinds.kind import PRIORITY
from mind_body.matrix.outside import clean

UNITS = ("mind-persona@{}.service", "mind-self@{}.service")
"""What runs for one Mind alone."""
HOST_UNITS = ("mind-mouth.service", "mind-heartbeat.service", "mind-lease.service")
SHOWN = ("MESSAGE", "PRIORITY", "MIND", "ORGAN", "REASON", "_SYSTEMD_UNIT", "_PID")
NEWEST = ("--lines=100",)
"""Without any option of journalctl's."""
ORGAN_WIDTH = len("heartbeat")
_MATCH = re.compile(r"[A-Z_][A-Z0-9_]*=.*", re.DOTALL)
_VALUE = "nSUutpFcDgMTo"
"""Short options that a value follows: what comes after them in the same word is no option."""
_UNIT = re.compile(r"mind-([a-z]+)(?:@([a-z0-9-]+))?\.service")


@dataclass(frozen=True, slots=True)
class Plan:
    """How journalctl is called."""

    arguments: tuple[str, ...]
    ours: bool
    """Whether its JSON is rendered here; else it prints what it was asked for."""


@dataclass(frozen=True, slots=True)
class Line:
    text: str
    priority: int


def plan_log(name: str | None, words: Sequence[str]) -> Plan:
    """Her own lines, what her processes wrote to stderr, and what the manager has against them; of all Minds where `name` is None.

    Words that are matches of journalctl's (`ORGAN=mouth`) narrow all of that; every other word is passed on as it is.
    """
    after_grep = {place + 1 for place, word in enumerate(words) if word in {"-g", "--grep"}}
    found = {place for place, word in enumerate(words) if _MATCH.fullmatch(word)} - after_grep
    options = tuple(word for place, word in enumerate(words) if place not in found)
    narrowed = [words[place] for place in sorted(found)]
    groups = [[*group, *narrowed] for group in _groups(name)]
    matches = tuple(word for place, group in enumerate(groups) for word in (["+"] * bool(place) + group))
    output = any(_asks(word, "o", "--output") for word in options)
    ours = not output and not any(_asks(word, "x", "--catalog") for word in options)
    fields = ("--output=json", "--all", f"--output-fields={','.join(SHOWN)}")
    form = fields if ours else () if output else ("--output=short-iso",)
    return Plan((*form, *(options or NEWEST), *matches), ours)


def render_line(entry: Mapping[str, Any], stamp: str, *, named: bool) -> Line:
    """Instant, Mind where not `named`, organ, sentence, and the reason where the sentence does not have it."""
    mind, organ = _who(entry)
    sentence, reason = _text(entry.get("MESSAGE")), _text(entry.get("REASON"))
    why = f"  [{reason}]" if reason and reason not in sentence else ""
    who = "" if named else f"{mind:<12} "
    return Line(f"{stamp}  {who}{organ:<{ORGAN_WIDTH}}  {sentence}{why}", _priority(entry))


def _groups(name: str | None) -> list[list[str]]:
    units = [unit.format(name) for unit in UNITS] if name else list(HOST_UNITS)
    worse = [f"PRIORITY={number}" for number in range(PRIORITY["warning"] + 1)]
    return [
        [f"MIND={name}" if name else "SYSLOG_IDENTIFIER=mind"],
        [f"_SYSTEMD_UNIT={unit}" for unit in units],
        ["_PID=1", *(f"UNIT={unit}" for unit in units), *worse],
    ]


def _asks(word: str, letter: str, name: str) -> bool:
    """Whether a word of the command line is this option, also as one of several letters (`-fx`)."""
    if word.startswith("--"):
        return word.partition("=")[0] == name
    letters = re.match(f"-([^{_VALUE}]*[{_VALUE}]?)", word)
    return letters is not None and letter in letters[1]


def _who(entry: Mapping[str, Any]) -> tuple[str, str]:
    unit = _UNIT.fullmatch(_text(entry.get("_SYSTEMD_UNIT")))
    organ, mind = (unit[1], unit[2] or "") if unit else ("", "")
    if _text(entry.get("_PID")) == "1":
        organ = "systemd"
    return _text(entry.get("MIND")) or mind, _text(entry.get("ORGAN")) or organ


def _priority(entry: Mapping[str, Any]) -> int:
    value = _text(entry.get("PRIORITY"))
    return int(value) if value.isdecimal() else PRIORITY["info"]


def _text(value: Any) -> str:
    """A field of journalctl's JSON on one line: a string, bytes as numbers, several values of one name, or null."""
    if isinstance(value, list):
        numbers = all(isinstance(one, int) for one in value)
        value = bytes(value).decode(errors="replace") if numbers else value[0]
    return " ".join(clean(value).splitlines()).expandtabs(4).rstrip() if isinstance(value, str) else ""
