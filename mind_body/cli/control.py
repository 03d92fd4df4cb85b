"""Wiring: `mind brake` and `mind dial`: write the file, poke every organ, wait until each one that runs has acted.

An organ has acted when its acknowledgement in the mind names what the files come to now. Who does not is named after a bounded
wait; the brake itself holds from the moment its file is written, since every organ reads it before every consequence.
"""

import json

import click
import trio

from mind_body.cli.render import list_words
from mind_body.cli.who import read_user_name
from mind_body.clock import now_ms, render_utc
from mind_body.config import list_minds, parse_settings, read_mind_config
from mind_body.control.effective import BrakeFile, DialFile, Held
from mind_body.control.files import read_control, read_dial, write_brake, write_dial
from mind_body.errors import ConfigError, MindBodyError, OperatorError
from mind_body.home import Home
from mind_body.host.liveness import read_holder
from mind_body.host.poke import send_poke
from mind_body.mind.acks import is_acked
from mind_body.mind.store import open_mind

ASK_AGAIN_S = 0.05
"""Between two looks at the acknowledgements; an organ that was poked takes a few milliseconds."""


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
    """Hold NAME, and return when every organ has acted on it."""
    for name in _chosen(home, names, every):
        write_brake(home, name, BrakeFile(state="held", reason=reason, by=read_user_name(), at=render_utc(now_ms())))
        _settle(home, name, wait_s)
        click.echo(f"{name} is held{': ' + reason if reason else ''}.")


@brake.command()
@_names
@_every
@click.option("--reason", default="", metavar="TEXT", help="Why; kept in the brake's file.")
@_wait
@click.pass_obj
def release(home: Home, names: tuple[str, ...], every: bool, reason: str, wait_s: float) -> None:
    """Release NAME: she may act, within the dial."""
    for name in _chosen(home, names, every):
        write_brake(home, name, BrakeFile(state="released", reason=reason, by=read_user_name(), at=render_utc(now_ms())))
        control = read_control(home, name)
        if isinstance(control, Held):
            raise OperatorError(f"{name} is still held: {control.reason}")
        _settle(home, name, wait_s)
        click.echo(f"{name} is released.")


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
        write_dial(home, name, values)
        _settle(home, name, wait_s)
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


def _settle(home: Home, name: str, wait_s: float) -> None:
    """Poke every organ; wait until the running ones have acted."""
    for path in (home.mouth_socket, home.heartbeat_socket, home.persona_socket(name)):
        send_poke(path)  # refused where nobody runs, which is what `_running` is for
    late = trio.run(_wait_for, home, name, wait_s)
    if late:
        raise MindBodyError(
            f"{name}'s files are written and hold, but {list_words(late)} did not tell within {wait_s:g} s that they were read; "
            "`mind status` shows what runs, and the journal what it does"
        )


async def _wait_for(home: Home, name: str, wait_s: float) -> list[str]:
    late: list[str] = []
    with trio.move_on_after(wait_s):
        while late := _late(home, name):  # noqa: ASYNC110 - the acknowledgement is another process's
            await trio.sleep(ASK_AGAIN_S)
    return late


def _late(home: Home, name: str) -> list[str]:
    """The organs that run and have not acknowledged what the files come to now."""
    running = [organ for organ in ("mouth", "heartbeat") if read_holder(home.lock_file(organ)) is not None]
    running += ["persona"] if read_holder(home.lock_file("persona", name)) is not None else []
    if not running:
        return []
    control = read_control(home, name)
    mind = open_mind(home.mind_db(name))
    try:
        with mind.read() as tx:
            return [organ for organ in running if not is_acked(tx, organ, control)]
    finally:
        mind.close()
