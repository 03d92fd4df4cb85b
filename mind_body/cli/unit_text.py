"""Rule: how a unit of ours is written for one host: with the paths of this installation, in the words that its systemd knows.

`@MIND@` is the program, `@PYTHON@` its interpreter. A line that begins with `@SINCE-254@` is for that systemd and newer ones; an
older one would warn of it at every start.
"""

import re
from collections.abc import Sequence

_SINCE = re.compile(r"@SINCE-(\d+)@")


def render_unit(text: str, program: Sequence[str], python: str, systemd: int) -> str:
    """`systemd`: the version that will read it."""
    lines = (_keep(line, systemd) for line in text.splitlines(keepends=True))
    return "".join(lines).replace("@MIND@", render_command(program)).replace("@PYTHON@", render_command([python]))


def render_command(words: Sequence[str]) -> str:
    """As `ExecStart=` reads it (systemd.service(5)): quoted, and no specifier or variable in it."""
    return " ".join(_quote(word) for word in words)


def _keep(line: str, systemd: int) -> str:
    found = _SINCE.match(line)
    if found is None:
        return line
    return line[found.end() :] if int(found[1]) <= systemd else ""


def _quote(word: str) -> str:
    text = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{text}"' if any(mark in text for mark in " '\t;\\") else text
