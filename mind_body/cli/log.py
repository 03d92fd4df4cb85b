"""Wiring: `mind log`: journalctl for people."""

import json
import os
import shutil
import time

import click
import trio

from mind_body.cli.log_lines import Plan, plan_log, render_line
from mind_body.config import environment
from mind_body.errors import ConfigError, MindBodyError
from mind_body.home import NAME_PATTERN, Home
from mind_body.host.process import drain_lines, start_child
from mind_body.journal_kinds.kind import PRIORITY

ENTRY_CAP = 1 << 20
"""Bytes of one entry that anybody will read on a terminal."""


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[NAME] [JOURNALCTL OPTIONS]...")
@click.pass_obj
def log(home: Home, words: tuple[str, ...]) -> None:
    """Show the journal of NAME, or of every Mind: when, which organ, what happened and why.

    \b
    Every option of journalctl goes to it. Without any, the last 100 lines are shown.
        mind log ada --follow
        mind log ada --since today -p warning
        mind log ada ORGAN=persona -n 20
        mind log ada -x                          with what each line means
        mind log ada -o json                     with every field

    The same, by hand: journalctl MIND=ada. This adds what her own processes wrote to stderr, and what systemd says
    where one of them failed: journalctl -u mind-persona@ada -u mind-self@ada.
    """
    name = words[0] if words and not words[0].startswith("-") and "=" not in words[0] else None
    plan = plan_log(name, words[1:] if name else words)
    _check(home, name)
    if not plan.ours:
        os.execvpe("journalctl", ["journalctl", *plan.arguments], dict(environment))  # noqa: S606, S607 - its own pager, signals, exit code
    try:
        raise SystemExit(trio.run(_show, plan, name is not None, "--utc" in words))
    except KeyboardInterrupt:
        return  # the end of --follow


def _check(home: Home, name: str | None) -> None:
    if name is not None and not NAME_PATTERN.fullmatch(name):
        raise ConfigError(f"'{name}' is not a Mind's name: small letters, digits and '-', at most 32, a letter first")
    if home.root is not None:
        match = f" MIND={name}" if name else " -t mind"
        raise MindBodyError(
            f"the organs of {home.root} write their journal where `mind up` has its stderr; "
            f"where that runs as a unit, journalctl has it: `journalctl --user{match}`"
        )
    if shutil.which("journalctl", path=environment.get("PATH")) is None:
        raise MindBodyError("journalctl is not here: without systemd the journal is what `mind up` writes to stderr")


async def _show(plan: Plan, named: bool, utc: bool) -> int:
    child = start_child(["journalctl", *plan.arguments], env=dict(environment), stdout="pipe")
    try:
        assert child.stdout is not None
        await drain_lines(child.stdout, lambda line: _print(line, named=named, utc=utc), ENTRY_CAP)
        return await child.wait()
    finally:
        await child.aclose()


def _print(line: str, *, named: bool, utc: bool) -> None:
    try:
        entry = json.loads(line)
        at = int(entry["__REALTIME_TIMESTAMP"]) // 1_000_000
    except (ValueError, TypeError, KeyError):
        click.echo(line)  # journalctl's own words, like that there are no entries
        return
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S%z", time.gmtime(at) if utc else time.localtime(at))
    found = render_line(entry, stamp, named=named)
    click.echo(_paint(found.text, found.priority))


def _paint(text: str, priority: int) -> str:
    """As journalctl does; click leaves it out where nobody sees colours."""
    if priority <= PRIORITY["error"]:
        return click.style(text, fg="red", bold=True)
    if priority == PRIORITY["warning"]:
        return click.style(text, fg="yellow")
    return click.style(text, bold=True) if priority == PRIORITY["notice"] else click.style(text, dim=priority == PRIORITY["debug"])
