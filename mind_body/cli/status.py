"""Wiring: `mind status`: a table for people, JSON for machines."""

import json
from typing import Any

import click

from mind_body.cli.mind_status import DAEMONS, DEAF_AFTER_MS, Status, read_status, read_unit
from mind_body.cli.minds import find_minds
from mind_body.cli.render import list_words, render_plain, render_table, render_tokens, render_wait, render_when
from mind_body.clock import next_day, next_month, now_ms, render_utc
from mind_body.config import read_host_config
from mind_body.errors import MindBodyError
from mind_body.home import Home
from mind_body.money import render_usd
from mind_body.settings import HostConfig

HEAD = ("MIND", "BRAKE", "RUN", "MAIL", "UNSENT", "CONTEXT", "TODAY", "MONTH", "PERSONA", "SELF")


@click.command()
@click.argument("names", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def status(home: Home, names: tuple[str, ...], as_json: bool) -> None:
    """Show the Minds of this host: brake, live run, mail that waits, context, spending, what runs.

    \b
    JSON: {home, run_dir, minds: [{
        name, brake ("held" or "released"), reason (why it is held), live_run (null, or {id, kind, cause, reason, opened_at, held}),
        self_run (the same of her Self), waiting_work (work that waits for a run, or for a confirmation),
        pending (mail that no turn has closed), unsent (said, not yet in the room), prefix_tokens and ceiling_tokens (of the session
        used last), spend_today_micro_usd and spend_month_micro_usd (by her own record, in the host's day and month),
        day_cap_micro_usd and month_cap_micro_usd (what she may spend in them), open_questions (how many only an operator can
        answer), spent_places [{room, thread}] (where she answers no bots until a person speaks; thread null: all of the room),
        units {mouth, heartbeat, lease, persona, self: "running", "idle" or "stopped"}, pauses [{cause, until, reason}],
        encrypted_rooms (rooms she is in and cannot read), heard_until (when the homeserver's newest answer was stored, or null),
        fault (null, or why not readable)}]}
    """
    host = _read_host(home)
    minds = [read_status(home, host, name) for name in find_minds(home, names)]
    if as_json:
        click.echo(json.dumps({"home": str(home.root or home.etc), "run_dir": str(home.run), "minds": minds}, indent=2))
        return
    if not minds:
        click.echo("There is no Mind here yet: `mind new NAME` makes one.")
        return
    click.echo(render_table(HEAD, [_row(mind) for mind in minds]))
    click.echo(_daemons(home))
    for note in [note for mind in minds for note in _notes(home, host, mind)]:
        click.echo(note)
    if home.root is not None and home.run.parent != home.root:
        click.echo(f"Sockets are in {home.run}: below {home.root} their paths would be too long.")


def _read_host(home: Home) -> HostConfig:
    """Every default where the file cannot be used: what a Mind is at is to be seen all the same."""
    try:
        return read_host_config(home)
    except MindBodyError as error:
        click.echo(f"mind: {error}; shown by the defaults", err=True)
        return HostConfig()


def _row(mind: Status) -> list[str]:
    run = mind["live_run"]
    context = f"{render_tokens(mind['prefix_tokens'])}/{render_tokens(mind['ceiling_tokens'])}" if mind["ceiling_tokens"] else "-"
    return [
        mind["name"],
        mind["brake"],
        f"{run['cause']} {render_wait(now_ms() - run['opened_at'])}" if run else "-",
        str(mind["pending"]),
        str(mind["unsent"]),
        context,
        _of_cap(mind["spend_today_micro_usd"], mind["day_cap_micro_usd"]),
        _of_cap(mind["spend_month_micro_usd"], mind["month_cap_micro_usd"]),
        mind["units"]["persona"],
        _self_cell(mind),
    ]


def _of_cap(spent: int, cap: int) -> str:
    return f"{render_usd(spent)}/{render_usd(cap)}"


def _self_cell(mind: Status) -> str:
    """What runs, for how long, and what waits behind it."""
    run, waiting = mind["self_run"], mind["waiting_work"]
    doing = f"{run['cause']} {render_wait(now_ms() - run['opened_at'])}" if run else mind["units"]["self"]
    return f"{doing}, {waiting} waiting" if waiting else doing


def _daemons(home: Home) -> str:
    """The organs that serve every Mind, in one line."""
    states = {organ: read_unit(home, organ, "stopped") for organ in DAEMONS}
    words = list_words([f"the {organ} is {state}" for organ, state in states.items()])
    hint = f" (`mind --home {home.root} up` runs them)" if home.root is not None and "stopped" in states.values() else ""
    return f"{words[0].upper()}{words[1:]}{hint}."


def _notes(home: Home, host: HostConfig, mind: Status) -> list[str]:
    name = mind["name"]
    notes = [f"{name}: {mind['fault']}"] if mind["fault"] else []
    if mind["brake"] == "held":
        by_a_file = str(home.control_dir(name)) in mind["reason"]
        way_out = "`mind doctor` says what mends it" if by_a_file else f"`mind brake release {name}`"
        notes.append(f"{name} is held: {mind['reason']} ({way_out})")
    notes += [f"{name} waits{_where(pause)} until {render_utc(pause['until'])}: {pause['reason']}" for pause in mind["pauses"]]
    notes += _spent_notes(host, mind)
    if mind["open_questions"]:
        times = "a question waits" if mind["open_questions"] == 1 else f"{mind['open_questions']} questions wait"
        notes.append(f"{name}: {times} for an operator's answer (`mind questions {name}`)")
    if mind["spent_places"]:
        where = list_words(list(dict.fromkeys(str(place["room"]) for place in mind["spent_places"])))
        notes.append(f"{name} answers no bots until a person speaks there: {where}")
    if mind["units"]["mouth"] == "running" and (mind["heard_until"] or 0) < now_ms() - DEAF_AFTER_MS:
        since = f"since {render_utc(mind['heard_until'])}" if mind["heard_until"] else "yet"
        notes.append(f"{name} has not heard her homeserver {since}: `mind doctor` says what is wrong")
    if mind["encrypted_rooms"]:
        notes.append(f"{name} cannot read encrypted rooms, and is in {list_words(mind['encrypted_rooms'])}")
    return notes


def _where(pause: dict[str, Any]) -> str:
    """Of a pause that holds up one conversation and no other."""
    conversation = str(pause["cause"]).partition(":")[2]
    return f" in {render_plain(conversation)}" if conversation else ""


def _spent_notes(host: HostConfig, mind: Status) -> list[str]:
    """Caps that her own record has reached. The ledger, which counts what is held back, may refuse sooner (`mind spend`)."""
    now, zone = now_ms(), host.time_zone
    windows = (
        ("day", mind["spend_today_micro_usd"], mind["day_cap_micro_usd"], next_day(now, zone)),
        ("month", mind["spend_month_micro_usd"], mind["month_cap_micro_usd"], next_month(now, zone)),
    )
    return [
        f"{mind['name']} has spent what she may in a {word}: {_of_cap(spent, cap)}; again {render_when(until, zone, now)}"
        for word, spent, cap, until in windows
        if spent and spent >= cap
    ]
