"""Wiring: `mind status`: a table for people, JSON for machines."""

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import click

from mind_body.cli.mind_status import DEAF_AFTER_MS, Status, read_status
from mind_body.cli.minds import find_minds
from mind_body.cli.render import list_words, render_plain, render_table, render_tokens, render_wait, render_when
from mind_body.cli.unit_states import States, describe, read_states
from mind_body.clock import next_day, next_month, now_ms, render_utc
from mind_body.config import read_host_config
from mind_body.control.govern import RUN_CAP
from mind_body.errors import MindBodyError
from mind_body.home import Home
from mind_body.host.units import DAEMONS, list_units_of
from mind_body.money import render_usd
from mind_body.settings import HostConfig

HEAD = ("MIND", "BRAKE", "RUN", "MAIL", "UNSENT", "CONTEXT", "TODAY", "MONTH", "PERSONA", "SELF", "LAST REASON")
REASON_LEAST, REASON_MOST = 24, 160
"""Characters of the last cell: on a narrow terminal, and where no terminal bounds it."""


@click.command()
@click.argument("names", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def status(home: Home, names: tuple[str, ...], as_json: bool) -> None:
    """Show the Minds of this host: brake, live run, mail that waits, context, spending, what runs, and why nothing does.

    Under systemd what runs is what systemd says; without it, the locks that organs hold.

    \b
    JSON: {home, run_dir, systemd {fault, units {active, sub, status, result, exit_status}} (null where systemd does not carry these
        Minds; fault: null, or why it does not answer, and then the locks are what is known; units: by name, as systemctl has them,
        status: what it says of itself), minds: [{
        name, brake ("held" or "released"), reason (why it is held), live_run (null, or {id, kind, cause, reason, opened_at, held}),
        self_run (the same of her Self), waiting_work (work that waits for a run, or for a confirmation),
        pending (mail that no turn has closed), unsent (said, not yet in the room), prefix_tokens and ceiling_tokens (of the session
        used last), spend_today_micro_usd and spend_month_micro_usd (by her own record, in the host's day and month),
        day_cap_micro_usd and month_cap_micro_usd (what she may spend in them), open_questions (how many only an operator can
        answer), spent_places [{room, thread}] (where she answers no bots until a person speaks; thread null: all of the room),
        units {mouth, heartbeat, lease, persona, self} (each "running", "idle" or "stopped"; under systemd also "starting",
        "restarting", "stopping", "failed"), last_reason (why she does nothing now, or how her newest run ended), last_at (when that
        ended, or null), pauses [{cause, until, reason}], encrypted_rooms (rooms she is in and cannot read), heard_until (when the
        homeserver's newest answer was stored, or null), fault (null, or why not readable)}]}
    """
    host, found = _read_host(home), find_minds(home, names)
    states = read_states(home)
    minds = [read_status(states, host, name) for name in found]
    if as_json:
        about = {
            "home": str(home.root or home.etc),
            "run_dir": str(home.run),
            "systemd": _render_systemd(states, found if names else None),
        }
        click.echo(json.dumps({**about, "minds": minds}, indent=2))
        return
    if not minds:
        click.echo(_nobody(home))
        return
    click.echo(render_table(HEAD, _rows(minds)))
    click.echo(_daemons(states, found))
    for note in [*_host_notes(states), *(note for mind in minds for note in _notes(states, host, mind))]:
        click.echo(render_plain(note))


def _nobody(home: Home) -> str:
    if home.root is None and not home.minds_dir.is_dir():
        return f"This host carries no Minds ({home.etc}): `mind install` prepares it, or name a home directory with --home DIR."
    return "There is no Mind here yet: `mind new NAME` makes one."


def _read_host(home: Home) -> HostConfig:
    """Every default where the file cannot be used: what a Mind is at is to be seen all the same."""
    try:
        return read_host_config(home)
    except MindBodyError as error:
        click.echo(f"mind: {error}; shown by the defaults", err=True)
        return HostConfig()


def _rows(minds: Sequence[Status]) -> list[list[str]]:
    """The last cell is a sentence: it gets what is left of the line where somebody reads it."""
    rows = [_row(mind) for mind in minds]
    width = len(render_table(HEAD[:-1], rows).partition("\n")[0]) + len("  ")
    most = max(shutil.get_terminal_size().columns - width, REASON_LEAST) if sys.stdout.isatty() else REASON_MOST
    reasons = [_cut(_last(mind), most) for mind in minds]
    return [[*row, reason] for row, reason in zip(rows, reasons, strict=True)]


def _last(mind: Status) -> str:
    ago = f", {render_wait(now_ms() - mind['last_at'])} ago" if mind["last_at"] is not None else ""
    return " ".join(render_plain(mind["last_reason"] + ago).split())


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


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


def _daemons(states: States, names: list[str]) -> str:
    """The organs that serve every Mind: a table of what they say of themselves, where systemd has it, or one line."""
    if states.units is not None:
        rows = [(unit.name.removesuffix(".service"), describe(unit), unit.status or "-") for unit in states.list_told(names)]
        return f"\n{render_table(('UNIT', 'STATE', 'SAYS'), rows)}"
    running = {organ: states.of_daemon(organ) for organ in DAEMONS}
    words = list_words([f"the {organ} is {state}" for organ, state in running.items()])
    root = states.home.root
    hint = f" (`mind --home {root} up` runs them)" if root is not None and "stopped" in running.values() else ""
    return f"{words[0].upper()}{words[1:]}{hint}."


def _host_notes(states: States) -> Iterator[str]:
    home = states.home
    if home.root is None and states.units is None:
        why = states.fault or "systemd does not run here"
        yield f"{why[0].upper()}{why[1:]}: what is said of units is what their locks say."
    if states.units is not None:
        down = [organ for organ in DAEMONS if states.of_daemon(organ) in {"stopped", "failed"}]
        words = {"stopped": "is stopped", "failed": "has failed"}
        named = list_words([f"the {organ} {words[states.of_daemon(organ)]}" for organ in down])
        if down:
            yield f"{named[0].upper()}{named[1:]}: `mind doctor` says why, `systemctl start mind.target` starts what is stopped"
    if home.root is not None and home.run.parent != home.root:
        yield f"Sockets are in {home.run}: below {home.root} their paths would be too long."


def _render_systemd(states: States, names: list[str] | None) -> dict[str, Any] | None:
    """`names`: of Minds these alone."""
    if states.units is None and not states.fault:
        return None
    wanted = None if names is None else {unit for name in names for unit in list_units_of(name)}
    units = [unit for unit in (states.units or {}).values() if wanted is None or "@" not in unit.name or unit.name in wanted]
    keys = ("active", "sub", "status", "result", "exit_status")
    return {"fault": states.fault or None, "units": {unit.name: {key: getattr(unit, key) for key in keys} for unit in units}}


def _notes(states: States, host: HostConfig, mind: Status) -> list[str]:
    home, name = states.home, mind["name"]
    notes = [f"{name}: {mind['fault']}"] if mind["fault"] else []
    if mind["brake"] == "held":
        by_a_file = str(home.control_dir(name)) in mind["reason"]
        way_out = "`mind doctor` says what mends it" if by_a_file else f"`mind brake release {name}`"
        notes.append(f"{name} is held: {mind['reason']} ({way_out})")
    if mind["brake"] == "released" and states.is_started(name) is False:
        notes.append(f"{name} is released, and nothing starts her: `systemctl enable --now mind@{name}.target`")
    notes += [_pause_note(name, pause) for pause in mind["pauses"]]
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


def _pause_note(name: str, pause: dict[str, Any]) -> str:
    if pause["cause"].partition(":")[0] == RUN_CAP:
        return f"{name} waits{_where(pause)} until one run may cost more (`mind dial {name} --base-run-usd …`): {pause['reason']}"
    return f"{name} waits{_where(pause)} until {render_utc(pause['until'])}: {pause['reason']}"


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
