"""Loop: one run of a Self, watched until it ends. On a terminal one line that is redrawn; into a pipe a line for every change."""

import shutil
import sys

import click
import trio

from mind_body.cli.work import render_watch
from mind_body.clock import now_ms
from mind_body.mind.records import Run
from mind_body.mind.runs import read_run
from mind_body.mind.self_runs import read_progress
from mind_body.mind.store import Mind

LOOK_S = 0.25
"""Between two looks; looking is a read of the mind, and costs the run nothing."""
BACK = "\r\x1b[K"
"""To the line's beginning, and clear it."""


def watch_run(mind: Mind, run: Run) -> Run:
    """The run as it ended."""
    return trio.run(_watch, mind, run)


async def _watch(mind: Mind, run: Run) -> Run:
    terminal, before = sys.stdout.isatty(), None
    while True:
        with mind.read() as tx:
            found, progress = read_run(tx, run.id) or run, read_progress(tx, run.id)
        seen = (found.holder, progress)
        if terminal:
            width = shutil.get_terminal_size().columns - 1
            click.echo(BACK + render_watch(found, progress, now_ms())[:width], nl=False)
        elif seen != before:
            click.echo(render_watch(found, progress, found.ended_at or now_ms()))
        before = seen
        if found.ended_at is not None:
            click.echo(BACK if terminal else "", nl=False)
            return found
        await trio.sleep(LOOK_S)
