"""Wiring: `mind organ`: one organ in this process. systemd and `mind up` start the same."""

import gc
import importlib
from collections.abc import Callable
from typing import Any, NoReturn

import click
import trio

from mind_body.errors import MindBodyError
from mind_body.home import NAME_PATTERN, Home

DAEMONS = ("lease", "mouth", "heartbeat")
"""One per host, for all its Minds."""
HALVES = ("persona", "self")
"""One per Mind, and only while there is something for it to do."""
ROOMS = {"self": "self_run"}
"""Where an organ's code lies, if not under its own name."""


@click.command()
@click.argument("organ", type=click.Choice([*DAEMONS, *HALVES]))
@click.option("--mind", metavar="NAME", help="Whose; for persona and self only.")
@click.pass_obj
def organ(home: Home, organ: str, mind: str | None) -> NoReturn:
    """Run one organ in the foreground, as systemd and `mind up` do.

    mouth, heartbeat and lease serve all Minds of the host. persona and self serve the one that --mind names; without an open run
    of their kind they do nothing and end with 0.
    """
    if (organ in HALVES) != (mind is not None):
        raise click.UsageError("--mind NAME goes with persona and self, and with those alone")
    if mind is not None and not NAME_PATTERN.fullmatch(mind):
        raise MindBodyError(f"'{mind}' is not a Mind's name")
    run = _import_run(organ)
    raise SystemExit(trio.run(run, home) if mind is None else trio.run(run, home, mind))


def _import_run(organ: str) -> Callable[..., Any]:
    """The organ's main. What it imports lives as long as the process: it is put where the collector does not look."""
    gc.disable()
    run: Callable[..., Any] = importlib.import_module(f"mind_body.{ROOMS.get(organ, organ)}.main").run
    gc.freeze()
    gc.enable()
    return run
