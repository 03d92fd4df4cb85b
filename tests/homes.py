"""Homes for the tests of verbs: a directory with Minds in it, as `mind new` would have left it, and nobody running."""

from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from mind_body.cli.create import NewMind, create_mind
from mind_body.cli.main import cli
from mind_body.config import find_home
from mind_body.home import Home

AT = "2026-11-30T00:00:00Z"


def make_home(directory: Path, *names: str, released: bool = False, **tables: dict[str, Any]) -> Home:
    """A home below `directory` with one Mind per name; `tables` are merged into each one's settings."""
    home = find_home(str(directory / "home"))
    for name in names:
        values: dict[str, Any] = {"matrix": {"homeserver": "http://127.0.0.1:9", "user": f"@{name}:mind.localhost"}}
        for table, keys in tables.items():
            values[table] = {**values.get(table, {}), **keys}
        create_mind(home, NewMind(name, values, {"matrix-password": "long and hers"}, released=released, by="a test"), AT)
    return home


def call(home: Home, *words: str, **options: Any) -> Result:
    """`mind --home HOME words…`, in this process."""
    return CliRunner().invoke(cli, ["--home", str(home.root), *words], **options)
