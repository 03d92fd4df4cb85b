"""Wiring: `mind status` and `mind history`: tables for people, JSON for machines. A documented key never changes its meaning."""

import json
from typing import Any, TypedDict

import click

from mind_body.cli.minds import find_minds, opened
from mind_body.cli.render import list_words, render_plain, render_table, render_tokens, render_wait
from mind_body.clock import now_ms, render_utc, utc_day_start
from mind_body.config import read_mind_config
from mind_body.control.effective import Held
from mind_body.control.files import read_control
from mind_body.errors import MindBodyError
from mind_body.home import Home
from mind_body.host.liveness import read_holder
from mind_body.mind.records import Run
from mind_body.mind.reports import Entry, Figures, read_figures, read_history
from mind_body.money import render_usd

DEAF_AFTER_MS = 900_000
"""The mouth stores an empty answer's position every ten minutes: after a quarter of an hour she hears nobody."""


class Status(TypedDict):
    """One Mind in `mind status --json`."""

    name: str
    brake: str
    reason: str
    live_run: dict[str, Any] | None
    self_run: dict[str, Any] | None
    waiting_work: int
    pending: int
    unsent: int
    prefix_tokens: int
    ceiling_tokens: int
    spend_today_micro_usd: int
    units: dict[str, str]
    pauses: list[dict[str, Any]]
    encrypted_rooms: list[str]
    heard_until: int | None
    fault: str | None


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
        used last), spend_today_micro_usd (UTC day), units {mouth, heartbeat, persona, self: "running", "idle" or "stopped"},
        pauses [{cause, until, reason}], encrypted_rooms (rooms she is in and cannot read), heard_until (when the
        homeserver's newest answer was stored, or null), fault (null, or why not readable)}]}
    """
    minds = [read_status(home, name) for name in find_minds(home, names)]
    if as_json:
        click.echo(json.dumps({"home": str(home.root or home.etc), "run_dir": str(home.run), "minds": minds}, indent=2))
        return
    if not minds:
        click.echo("There is no Mind here yet: `mind new NAME` makes one.")
        return
    head = ("MIND", "BRAKE", "RUN", "MAIL", "UNSENT", "CONTEXT", "TODAY", "PERSONA", "SELF")
    click.echo(render_table(head, [_status_row(mind) for mind in minds]))
    click.echo(_daemons(home))
    for note in [note for mind in minds for note in _notes(home, mind)]:
        click.echo(note)
    if home.root is not None and home.run.parent != home.root:
        click.echo(f"Sockets are in {home.run}: below {home.root} their paths would be too long.")


@click.command()
@click.argument("name")
@click.option("--limit", default=40, show_default=True, type=click.IntRange(1), help="How many of the newest entries.")
@click.option("--conversation", metavar="ID", help="Only one: open, direct:ROOM or room:ROOM.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def history(home: Home, name: str, limit: int, conversation: str | None, as_json: bool) -> None:
    """Show what NAME heard, what she said, and the turns and runs behind it, oldest first.

    \b
    JSON: {mind, entries: [{at (ms since 1970), what, conversation, …}]}, by what:
        heard  room, who, text, standing ("mail" or "context"), state, reason, event_id, turn
        said   room, kind, text, state, reason, event_id, turn
        turn   turn, run, session, state, why, prefix_tokens, cached_tokens, output_tokens, cost_micro_usd, model_ms
        run    run, cause, reason, outcome, end_reason, turns, cost_micro_usd
    """
    read_mind_config(home, name)
    with opened(home, name) as mind, mind.read() as tx:
        entries = read_history(tx, limit, conversation)
    if as_json:
        rows = [{"at": e.at, "what": e.what, "conversation": e.conversation, **e.fields} for e in entries]
        click.echo(json.dumps({"mind": name, "entries": rows}, indent=2, ensure_ascii=False))
        return
    if not entries:
        click.echo(f"{name} has heard and said nothing yet.")
    for entry in entries:
        click.echo(f"{render_utc(entry.at)}  {_render_entry(entry)}")


def read_status(home: Home, name: str) -> Status:
    """One Mind's status; a mind file that cannot be read is a fault of its own and hides no other Mind."""
    control = read_control(home, name)
    figures, fault = _read_figures(home, name)
    return Status(
        name=name,
        brake="held" if isinstance(control, Held) else "released",
        reason=control.reason if isinstance(control, Held) else "",
        live_run=_render_run(figures.live_run) if figures and figures.live_run else None,
        self_run=_render_run(figures.self_run) if figures and figures.self_run else None,
        waiting_work=figures.waiting_work if figures else 0,
        pending=figures.pending if figures else 0,
        unsent=figures.unsent if figures else 0,
        prefix_tokens=figures.prefix_tokens if figures else 0,
        ceiling_tokens=figures.ceiling_tokens if figures else 0,
        spend_today_micro_usd=figures.spent_micro_usd if figures else 0,
        units={
            "mouth": _runs(home, "mouth", "stopped"),
            "heartbeat": _runs(home, "heartbeat", "stopped"),
            "persona": _runs(home, "persona", "idle", name),
            "self": _runs(home, "self", "idle", name),
        },
        pauses=[{"cause": p.cause, "until": p.until, "reason": p.reason} for p in figures.pauses if p.until > now_ms()]
        if figures
        else [],
        encrypted_rooms=list(figures.encrypted_rooms) if figures else [],
        heard_until=figures.heard_until if figures else None,
        fault=fault,
    )


def _read_figures(home: Home, name: str) -> tuple[Figures | None, str | None]:
    try:
        read_mind_config(home, name)
        with opened(home, name) as mind, mind.read() as tx:
            return read_figures(tx, utc_day_start(now_ms())), None
    except MindBodyError as error:
        return None, str(error)


def _runs(home: Home, organ: str, otherwise: str, name: str | None = None) -> str:
    return otherwise if read_holder(home.lock_file(organ, name)) is None else "running"


def _render_run(run: Run) -> dict[str, Any]:
    held = run.holder is not None
    return {
        "id": run.id,
        "kind": run.kind.value,
        "cause": run.cause,
        "reason": run.reason,
        "opened_at": run.opened_at,
        "held": held,
    }


def _status_row(mind: Status) -> list[str]:
    run = mind["live_run"]
    context = f"{render_tokens(mind['prefix_tokens'])}/{render_tokens(mind['ceiling_tokens'])}" if mind["ceiling_tokens"] else "-"
    return [
        mind["name"],
        mind["brake"],
        f"{run['cause']} {render_wait(now_ms() - run['opened_at'])}" if run else "-",
        str(mind["pending"]),
        str(mind["unsent"]),
        context,
        render_usd(mind["spend_today_micro_usd"]),
        mind["units"]["persona"],
        _self_cell(mind),
    ]


def _self_cell(mind: Status) -> str:
    """What runs, for how long, and what waits behind it."""
    run, waiting = mind["self_run"], mind["waiting_work"]
    doing = f"{run['cause']} {render_wait(now_ms() - run['opened_at'])}" if run else mind["units"]["self"]
    return f"{doing}, {waiting} waiting" if waiting else doing


def _daemons(home: Home) -> str:
    """The two organs that serve every Mind, in one line."""
    states = {organ: _runs(home, organ, "stopped") for organ in ("mouth", "heartbeat")}
    words = list_words([f"the {organ} is {state}" for organ, state in states.items()])
    hint = f" (`mind --home {home.root} up` runs them)" if home.root is not None and "stopped" in states.values() else ""
    return f"{words[0].upper()}{words[1:]}{hint}."


def _notes(home: Home, mind: Status) -> list[str]:
    name = mind["name"]
    notes = [f"{name}: {mind['fault']}"] if mind["fault"] else []
    if mind["brake"] == "held":
        by_a_file = str(home.control_dir(name)) in mind["reason"]
        way_out = "`mind doctor` says what mends it" if by_a_file else f"`mind brake release {name}`"
        notes.append(f"{name} is held: {mind['reason']} ({way_out})")
    notes += [f"{name} waits until {render_utc(pause['until'])}: {pause['reason']}" for pause in mind["pauses"]]
    if mind["units"]["mouth"] == "running" and (mind["heard_until"] or 0) < now_ms() - DEAF_AFTER_MS:
        since = f"since {render_utc(mind['heard_until'])}" if mind["heard_until"] else "yet"
        notes.append(f"{name} has not heard her homeserver {since}: `mind doctor` says what is wrong")
    if mind["encrypted_rooms"]:
        notes.append(f"{name} cannot read encrypted rooms, and is in {list_words(mind['encrypted_rooms'])}")
    return notes


def _render_entry(entry: Entry) -> str:
    fields = entry.fields
    if entry.what == "heard":
        verdict = f"{fields['standing']}, {fields['state']}: {fields['reason']}"
        return f"{fields['room']}  {fields['who']}: {render_plain(fields['text'])}   [{verdict}]"
    if entry.what == "said":
        return f"{fields['room']}  she ({fields['kind']}): {render_plain(fields['text'])}   [{fields['state']}]"
    if entry.what == "turn":
        spent = (
            f"{render_tokens(fields['prefix_tokens'])} in, {fields['output_tokens']} out, {render_usd(fields['cost_micro_usd'])}"
        )
        return f"turn {fields['state']}{': ' + fields['why'] if fields['why'] else ''}   [{spent}, {fields['model_ms']} ms]"
    end = f"{fields['outcome']} ({fields['end_reason']})" if fields["outcome"] else "open"
    turns = "1 turn" if fields["turns"] == 1 else f"{fields['turns']} turns"
    return f"run for {fields['cause']} ({fields['reason']}): {end}   [{turns}, {render_usd(fields['cost_micro_usd'])}]"
