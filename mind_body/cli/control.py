"""Wiring: `mind brake` and `mind dial`: write the files, poke every organ, wait until each one that runs has acted (see `acted`).

Who does not act is named after a bounded wait; a brake holds from the moment its file is written. Of several Minds, the ones that
could not be held, or did not act, are named when all the others have been told of.

Under systemd a held Mind's units are stopped when the organs have acted, so that no poke starts a half of hers. They are there
again before she is released: whoever then looks can poke her.
"""

import functools
import json
from collections.abc import Callable, Sequence

import click
import trio

from mind_body.cli.acted import Faults, carry_out
from mind_body.cli.unit_states import read_states
from mind_body.cli.who import read_user_name
from mind_body.clock import now_ms, render_utc
from mind_body.config import list_minds, parse_settings, read_mind_config
from mind_body.control.effective import BrakeFile, DialFile, Held, Released
from mind_body.control.files import read_control, read_dial, write_brake, write_dial
from mind_body.errors import ConfigError, MindBodyError, OperatorError
from mind_body.home import Home
from mind_body.host.manager import is_booted
from mind_body.host.units import resume_minds, stop_minds


@click.group()
def brake() -> None:
    """Hold Minds, or release them. A held Mind goes on hearing, and does nothing else."""


_names = click.argument("names", nargs=-1, metavar="NAME...")
_every = click.option("--all", "every", is_flag=True, help="Every Mind of this host.")
_wait = click.option("--wait", "wait_s", default=10.0, show_default=True, help="Seconds to wait for the organs.")


@brake.command()
@_names
@_every
@click.option("--reason", default="", metavar="TEXT", help="Why; `mind status` and the journal show it.")
@_wait
@click.pass_obj
def hold(home: Home, names: tuple[str, ...], every: bool, reason: str, wait_s: float) -> None:
    """Hold NAME, and return when every organ has acted on it. With --all, every brake is written before anybody is waited for."""
    made = BrakeFile(state="held", reason=reason, by=read_user_name(), at=render_utc(now_ms()))
    words = f"is held{': ' + reason if reason else ''}"
    chosen = _chosen(home, names, every)
    write = functools.partial(write_brake, home, brake=made)
    faults = _carry_out(home, chosen, write, wait_s, words)
    _end(chosen, faults, _by_manager(home, stop_minds, chosen))


@brake.command()
@_names
@_every
@click.option("--reason", default="", metavar="TEXT", help="Why; kept in the brake's file.")
@_wait
@click.pass_obj
def release(home: Home, names: tuple[str, ...], every: bool, reason: str, wait_s: float) -> None:
    """Release NAME: she may act, within the dial."""
    made = BrakeFile(state="released", reason=reason, by=read_user_name(), at=render_utc(now_ms()))

    def write(name: str) -> None:
        write_brake(home, name, made)
        control = read_control(home, name)
        if isinstance(control, Held):
            raise OperatorError(f"{name} is still held: {control.reason}")

    chosen = _chosen(home, names, every)
    fault = _by_manager(home, resume_minds, chosen)
    faults = _carry_out(home, chosen, write, wait_s, "is released")
    _note_unstarted(home, [name for name in chosen if name not in faults])
    _end(chosen, faults, fault)


@click.command()
@click.argument("name")
@click.option("--heat", type=float, metavar="X", help="0.05 to 2.0; cadence is base_cooldown_s / heat.")
@click.option("--base-cooldown-s", type=float, metavar="N", help="Seconds between unprompted wakes at heat 1.")
@click.option("--base-run-usd", type=float, metavar="X", help="What one run may cost at heat 1.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@_wait
@click.pass_obj
def dial(  # noqa: PLR0917 - click passes by position
    home: Home,
    name: str,
    heat: float | None,
    base_cooldown_s: float | None,
    base_run_usd: float | None,
    as_json: bool,
    wait_s: float,
) -> None:
    """Turn the dial of NAME; without options, show it.

    \b
    JSON: {mind, heat, base_cooldown_s, base_run_usd}
    """
    read_mind_config(home, name)
    wanted = {"heat": heat, "base_cooldown_s": base_cooldown_s, "base_run_usd": base_run_usd}
    turned = {key: value for key, value in wanted.items() if value is not None}
    if turned:
        values = _turn(_dial_or_default(home, name), turned)
        faults = trio.run(carry_out, home, [name], lambda one: write_dial(home, one, values), wait_s, lambda _: None)
        _raise(faults)
        if isinstance(read_control(home, name), Released):
            _note_unstarted(home, [name])
    else:
        values = read_dial(home, name)
    if as_json:
        click.echo(json.dumps({"mind": name, **values.model_dump()}, indent=2))
    else:
        click.echo(f"{name}: heat {values.heat:g}, base cooldown {values.base_cooldown_s:g} s, base run ${values.base_run_usd:g}.")


def _dial_or_default(home: Home, name: str) -> DialFile:
    """A dial that cannot be read is written anew: what is not turned is its default."""
    try:
        return read_dial(home, name)
    except ConfigError as error:
        click.echo(f"{error}; what is not turned now is its default again", err=True)
        return DialFile()


def _turn(values: DialFile, turned: dict[str, float]) -> DialFile:
    try:
        return parse_settings(DialFile, values.model_dump() | turned, "the dial")
    except ConfigError as error:
        raise click.UsageError(str(error)) from error


def _chosen(home: Home, names: tuple[str, ...], every: bool) -> list[str]:
    if every == bool(names):
        raise click.UsageError("name the Minds, or say --all")
    chosen = list_minds(home) if every else list(names)
    if not chosen:
        raise MindBodyError("there is no Mind here yet; `mind new NAME` makes one")
    for name in chosen:
        if name not in list_minds(home):
            read_mind_config(home, name)  # raises, naming the ones there are
    return chosen


def _carry_out(home: Home, names: list[str], write: Callable[[str], None], wait_s: float, words: str) -> Faults:
    """Each Mind's line as soon as she is as she is meant to be."""
    return trio.run(carry_out, home, names, write, wait_s, lambda name: click.echo(f"{name} {words}."))


def _by_manager(home: Home, change: Callable[[Sequence[str]], None], names: Sequence[str]) -> MindBodyError | None:
    """What went wrong with their units, where systemd carries them. The brake's file is what counts, and waits for nobody."""
    if home.root is not None or not is_booted():
        return None
    try:
        change(names)
    except MindBodyError as error:
        return error
    return None


def _note_unstarted(home: Home, names: Sequence[str]) -> None:
    """Who was disabled stays so, and would wait for ever."""
    states = read_states(home)
    for name in (name for name in names if states.is_started(name) is False):
        click.echo(f"mind: nothing starts {name}: `systemctl enable --now mind@{name}.target`", err=True)


def _end(names: list[str], faults: Faults, fault: MindBodyError | None) -> None:
    """What went wrong, by name, then with their units."""
    if len(names) == 1 and fault is None:
        _raise(faults)
    for name in (name for name in names if name in faults):
        click.echo(f"mind: {name}: {faults[name]}", err=True)
    if fault is not None:
        click.echo(f"mind: {fault}", err=True)
    found = [*faults.values(), *([fault] if fault is not None else [])]
    click.get_current_context().exit(max((one.exit_code for one in found), default=0))


def _raise(faults: Faults) -> None:
    for fault in faults.values():
        raise fault
