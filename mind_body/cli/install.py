"""Wiring: `mind install` and `mind uninstall`: look, say what is to be done, do it."""

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from mind_body.cli.install_host import Host, carry_out
from mind_body.cli.install_look import look_at
from mind_body.cli.install_shapes import ACCOUNTS, Facts, Plan, WantedFile
from mind_body.cli.install_wanted import PLACES, PREFIX, RUNTIME
from mind_body.cli.installation import find_fault, find_installation
from mind_body.cli.uninstall_plan import plan_uninstall
from mind_body.errors import OperatorError
from mind_body.host.manager import OLDEST, read_version

SHOWN = 4
"""Of what is left, so many are named."""


def _common(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that both verbs have."""
    command = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")(command)
    command = click.option("--dry-run", is_flag=True, help="Say what is to be done, and do nothing.")(command)
    root = click.Path(path_type=Path, file_okay=False)
    return click.option("--root", type=root, metavar="DIR", help="Work below DIR, as for a package; tell nobody.")(command)


@click.command()
@_common
@click.option("--prefix", metavar="DIR", help=f"Units go below it: {PREFIX}, or as before; a distribution's package says /usr.")
@click.option("--no-start", is_flag=True, help="Start and restart nothing.")
def install(root: Path | None, prefix: str | None, no_start: bool, dry_run: bool, as_json: bool) -> None:
    """Make this host carry Minds under systemd: users, directories, units. The same again changes nothing.

    Call it as root, from where mind-body is to stay. After an upgrade it writes the units that are others now, migrates Minds, and
    restarts the daemons one after the other. A file that you edited is left as it is; the new one is laid beside it as FILE.new.

    \b
    JSON: {release, changed, actions: [{do, about, why}], kept: [{path, why}], warnings, done}
    """
    host = Host((root or Path("/")).absolute())
    _check_rights(host, dry_run=dry_run)
    systemd = _check_systemd() if host.is_this else OLDEST
    installation = find_installation(host.root)
    fault = find_fault(installation, host.root)
    if fault and host.is_this:
        raise OperatorError(fault)
    wanted, facts, plan = look_at(host, installation, systemd, prefix, start=not no_start)
    warnings = [*([fault] if fault else []), *_warn_of_manager(facts)]
    words = _Words(installation.release, warnings, "Everything is as this release installs it.")
    _carry_out(host, plan, wanted.files, words, dry_run=dry_run, as_json=as_json)
    if not dry_run and facts.manager and not facts.minds and not as_json:
        click.echo("Now make a Mind: `mind new NAME`")


@click.command()
@_common
@click.option("--purge", is_flag=True, help="Remove Minds, their memory, configuration and credentials, too.")
def uninstall(root: Path | None, purge: bool, dry_run: bool, as_json: bool) -> None:
    """Take back what `mind install` put on this host: units, links, directories that are empty, users that own nothing.

    Minds stay as they are: configuration, memory, credentials. With --purge they go, too.

    \b
    JSON: {release, changed, actions: [{do, about, why}], kept: [{path, why}], warnings, done}
    """
    host = Host((root or Path("/")).absolute())
    _check_rights(host, dry_run=dry_run)
    facts = host.read_facts([*PLACES, RUNTIME], ACCOUNTS, host.read_manifest())
    plan = plan_uninstall(facts, PLACES, RUNTIME, purge=purge)
    if purge and facts.minds and not dry_run and sys.stdin.isatty():
        click.confirm(f"This deletes the memory of {', '.join(facts.minds)}. Go on?", abort=True)
    release = facts.manifest.release if facts.manifest else ""
    words = _Words(release, _tell_left(facts, purge=purge), "Nothing of mind-body is installed here.")
    _carry_out(host, plan, (), words, dry_run=dry_run, as_json=as_json)


@dataclass(frozen=True, slots=True)
class _Words:
    """What is told around a plan."""

    release: str
    warnings: Sequence[str]
    nothing: str
    """Where there is nothing to do."""


def _carry_out(host: Host, plan: Plan, files: Sequence[WantedFile], words: _Words, *, dry_run: bool, as_json: bool) -> None:
    """Say it, do it, say that it is done."""
    if not as_json:
        _show(plan, words)
    if not dry_run:
        carry_out(host, plan, files)
    count = len(plan.actions)
    changes = "1 change" if count == 1 else f"{count} changes"
    if as_json:
        click.echo(json.dumps(_render(plan, words, done=not dry_run), indent=2))
    elif count and dry_run:
        click.echo(f"Nothing was done. Without --dry-run: {changes}.")
    else:
        click.echo(f"Done: {changes}." if count else words.nothing)


def _show(plan: Plan, words: _Words) -> None:
    for action in plan.actions:
        click.echo(f"{action.do:<10} {action.about}{f'  ({action.why})' if action.why else ''}")
    for path, why in plan.kept.items():
        click.echo(f"{'keep':<10} {path}  ({why})")
    for warning in words.warnings:
        click.echo(f"mind: {warning}", err=True)


def _render(plan: Plan, words: _Words, *, done: bool) -> dict[str, Any]:
    return {
        "release": words.release,
        "changed": len(plan.actions) if done else 0,
        "actions": [{"do": action.do, "about": action.about, "why": action.why} for action in plan.actions],
        "kept": [{"path": path, "why": why} for path, why in plan.kept.items()],
        "warnings": list(words.warnings),
        "done": done,
    }


def _check_rights(host: Host, *, dry_run: bool) -> None:
    if host.is_this and not dry_run and os.geteuid() != 0:
        raise OperatorError("call it as root: it makes users, and writes below /etc, /usr and /var; --dry-run says what it does")


def _check_systemd() -> int:
    version, without = read_version(), "`mind --home DIR up` runs Minds without it"
    if version is None:
        raise OperatorError(f"systemd is not here; {without}")
    if version < OLDEST:
        raise OperatorError(f"the units need systemd {OLDEST} or newer, and this is {version}; {without}")
    return version


def _warn_of_manager(facts: Facts) -> list[str]:
    if facts.manager is not None and not facts.manager.booted:
        return ["systemd does not run here: units are enabled, and start at the next boot"]
    return []


def _tell_left(facts: Facts, *, purge: bool) -> list[str]:
    if not facts.left or purge:
        return []
    more = f" and {len(facts.left) - SHOWN} more" if len(facts.left) > SHOWN else ""
    return [f"what Minds are made of stays ({', '.join(facts.left[:SHOWN])}{more}); `mind uninstall --purge` removes it"]
