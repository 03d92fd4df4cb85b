"""Rule: the table of all kinds, and the journal catalog that is made from it.

`python -m mind_body.journal_kinds.table > units/mind-body.catalog` after a change; a test holds the file to the table.
"""

import textwrap
from collections.abc import Mapping

from mind_body.journal_kinds.hearing import HEARING
from mind_body.journal_kinds.kind import Kind
from mind_body.journal_kinds.money import MONEY
from mind_body.journal_kinds.organs import ORGANS
from mind_body.journal_kinds.speaking import SPEAKING
from mind_body.journal_kinds.turns import TURNS
from mind_body.journal_kinds.work import WORK

KINDS: Mapping[str, Kind] = {**HEARING, **SPEAKING, **TURNS, **WORK, **MONEY, **ORGANS}
WIDTH = 76
_HEAD = """\
# What journalctl -x says about each kind of line that mind-body writes.
# Made from mind_body/journal_kinds by `python -m mind_body.journal_kinds.table`.
"""


def render_catalog() -> str:
    """As systemd's message catalogs are written (https://www.freedesktop.org/wiki/Software/systemd/catalog)."""
    return "\n".join([_HEAD, *(_render_entry(name, kind) for name, kind in sorted(KINDS.items()))])


def _render_entry(name: str, kind: Kind) -> str:
    return (
        f"# {name}\n"
        f"-- {kind.message_id}\n"
        f"Subject: {kind.what.removesuffix('.')}\n"
        "Defined-By: mind-body\n\n"
        f"{_fill(kind.means)}\n\n"
        f"{_fill(f'What to do: {kind.act}')}\n"
    )


def _fill(words: str) -> str:
    return textwrap.fill(words, WIDTH, break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    print(render_catalog(), end="")  # noqa: T201 - a generator's output
