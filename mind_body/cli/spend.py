"""Wiring: `mind spend`: what was spent, on what, and what is left of every cap. From the lease's ledger, which it never changes."""

import datetime as dt
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import click

from mind_body.cli.left import Cap, Committed, Today, find_today, list_conversation_caps, list_host_caps, list_mind_caps
from mind_body.cli.minds import find_minds, opened
from mind_body.cli.render import list_words, render_plain, render_table, render_tokens, render_when
from mind_body.clock import now_ms
from mind_body.config import read_host_config, read_mind_config
from mind_body.control.govern import window_of
from mind_body.errors import MindBodyError
from mind_body.home import Home
from mind_body.lease.grant import Stop, is_over
from mind_body.lease.house import House
from mind_body.lease.ledger_read import By, CredentialPause, SpendRow, read_pauses, read_spend, read_totals
from mind_body.mind.questions import read_extensions
from mind_body.money import render_usd
from mind_body.settings import HostConfig

NO_LEDGER = "Nothing was spent here: the lease keeps the ledger, and has made none yet (`mind up` runs it)."
ALL_MINDS = "all Minds"


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is asked for."""

    names: tuple[str, ...]
    by: By
    since: str


@dataclass(frozen=True, slots=True)
class _Spend:
    """What is shown."""

    rows: list[SpendRow]
    caps: list[Cap]
    pauses: list[CredentialPause]


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME...]")
@click.option("--by", type=click.Choice(get_args(By)), default="day", show_default=True, help="What the rows are of.")
@click.option(
    "--since",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="DATE",
    help="From this day on, like 2026-11-30; otherwise this month.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def spend(home: Home, names: tuple[str, ...], by: By, since: dt.datetime | None, as_json: bool) -> None:
    """Show what model calls have cost, and what is left of the caps. A day and a month are those of the host's `time_zone`.

    What is not settled is held back: a call that is being made, or whose answer was lost. A cap counts it at the most that it may
    come to.

    \b
    JSON: {time_zone, since (the first day counted), by, ledger (false where the lease has made none yet), rows: [{
        what (the day, the Mind, the model or the conversation), mind (whose, or null), calls (settled ones), input_tokens (all,
        cached ones too), cached_tokens, output_tokens, cost_micro_usd, unsettled_calls, reserved_micro_usd (what those may cost)}],
        caps: [{mind (null: all Minds together), conversation (or null), window (the day or the month), committed_micro_usd
        (settled and reserved), cap_micro_usd, left_micro_usd, opens_at (ms since 1970: when the window is over)}],
        pauses: [{kind ("limited", "overloaded", "authentication" or "payment"), until (or null: an operator must act), reason,
        minds (whose credential it is)}]}
    """
    now, host = now_ms(), read_host_config(home)
    today = find_today(window_of(host, now), host.time_zone, now)
    first = since.strftime("%Y-%m-%d") if since else f"{today.window.month}-01"
    there = home.ledger.exists()
    found = _read(home, host, _Wanted(names, by, first), today) if there else _Spend([], [], [])
    found = replace(found, pauses=[one for one in found.pauses if not _is_over(home, one, now)])
    if as_json:
        about = {"time_zone": host.time_zone, "since": first, "by": by, "ledger": there}
        click.echo(json.dumps(about | _as_json(found), indent=2, ensure_ascii=False))
        return
    if not there:
        click.echo(NO_LEDGER)
        return
    for part in _render(found, by, first, host.time_zone, now):
        click.echo(part)


def _read(home: Home, host: HostConfig, wanted: _Wanted, today: Today) -> _Spend:
    minds = find_minds(home, wanted.names)
    whose: tuple[str | None, ...] = wanted.names or (None,)
    rows = _join(row for one in whose for row in read_spend(home.ledger, since_day=wanted.since, mind=one, by=wanted.by))
    pauses = [one for one in read_pauses(home.ledger) if not wanted.names or set(one.minds) & set(wanted.names)]
    totals = read_totals(home.ledger, today.window.day, today.window.month)
    caps: list[Cap] = []
    for mind in minds:
        own = totals.minds.get(mind)
        try:
            caps += _read_caps(home, mind, Committed(own.day, own.month) if own else Committed(), today)
        except MindBodyError as error:
            click.echo(f"mind: the caps of {mind} are passed over: {error}", err=True)
    caps += list_host_caps(host.spend, Committed(totals.host.day, totals.host.month), today)
    return _Spend(rows, caps, pauses)


def _is_over(home: Home, pause: CredentialPause, now: int) -> bool:
    """As the lease sees it. A key that was replaced is called with no more, so that nobody there forgets what was wrong with it."""
    house = House(home)
    keys = [(name, home.credentials / f"{name}.{kind}") for name in pause.minds for kind in ("model-key", "self-key")]
    mended_at = max((house.read_mended_at(name, key) for name, key in keys), default=0)
    return is_over(Stop(pause.kind, pause.until, pause.reason, pause.since), mended_at, now)


def _read_caps(home: Home, mind: str, committed: Committed, today: Today) -> list[Cap]:
    """Hers, and those of her conversations that have cost something, where there are such caps."""
    spend = read_mind_config(home, mind).spend
    with opened(home, mind) as file, file.read() as tx:
        window = today.window
        extensions = Committed(read_extensions(tx, f"day:{window.day}"), read_extensions(tx, f"month:{window.month}"))
    caps = list_mind_caps(mind, spend, committed, extensions, today)
    month = {row.what: row for row in _of_conversations(home, mind, f"{today.window.month}-01")}
    day = {row.what: row for row in _of_conversations(home, mind, today.window.day)}
    for conversation, row in month.items():
        spent = Committed(_committed(day[conversation]) if conversation in day else 0, _committed(row))
        caps += list_conversation_caps(mind, conversation, spend, spent, today)
    return caps


def _of_conversations(home: Home, mind: str, first: str) -> list[SpendRow]:
    return read_spend(home.ledger, since_day=first, mind=mind, by="conversation")


def _committed(row: SpendRow) -> int:
    return row.cost_micro_usd + row.reserved_micro_usd


def _join(rows: Iterable[SpendRow]) -> list[SpendRow]:
    """One row for each thing, where several Minds were asked for."""
    found: dict[tuple[str, str], SpendRow] = {}
    for row in rows:
        before = found.get((row.what, row.mind))
        found[row.what, row.mind] = row if before is None else _sum(row.what, row.mind, [before, row])
    return [found[key] for key in sorted(found)]


def _sum(what: str, mind: str, rows: Sequence[SpendRow]) -> SpendRow:
    figures = [name for name in SpendRow.__slots__ if name not in {"what", "mind"}]
    return SpendRow(what, mind, **{name: sum(getattr(row, name) for row in rows) for name in figures})


def _as_json(found: _Spend) -> dict[str, Any]:
    return {
        "rows": [
            {
                "what": row.what,
                "mind": row.mind or None,
                "calls": row.calls,
                "input_tokens": row.tokens - row.output_tokens,
                "cached_tokens": row.cached_tokens,
                "output_tokens": row.output_tokens,
                "cost_micro_usd": row.cost_micro_usd,
                "unsettled_calls": row.open_calls,
                "reserved_micro_usd": row.reserved_micro_usd,
            }
            for row in found.rows
        ],
        "caps": [
            {
                "mind": cap.mind,
                "conversation": cap.conversation,
                "window": cap.window,
                "committed_micro_usd": cap.committed,
                "cap_micro_usd": cap.cap,
                "left_micro_usd": cap.left,
                "opens_at": cap.opens_at,
            }
            for cap in found.caps
        ],
        "pauses": [{"kind": one.kind, "until": one.until, "reason": one.reason, "minds": list(one.minds)} for one in found.pauses],
    }


def _render(found: _Spend, by: By, first: str, zone: str, now: int) -> Iterable[str]:
    if found.rows:
        total = _sum("together", "", found.rows)
        head = (by.upper(), *(("MIND",) if by == "conversation" else ()), "CALLS", "IN", "CACHED", "OUT", "COST", "NOT SETTLED")
        yield render_table(head, [_row(row, by) for row in (*found.rows, total)])
    else:
        yield f"Nothing was spent since {first}."
    yield ""
    yield render_table(("CAP OF", "IN", "COMMITTED", "OF", "LEFT", "BEGINS ANEW"), [_cap_row(cap, zone, now) for cap in found.caps])
    for pause in found.pauses:
        yield _render_pause(pause, zone, now)
    yield f"Days and months are those of {zone}."


def _row(row: SpendRow, by: By) -> list[str]:
    held_back = f"{row.open_calls}, up to {render_usd(row.reserved_micro_usd)}" if row.open_calls else "-"
    return [
        render_plain(row.what),
        *((row.mind,) if by == "conversation" else ()),
        f"{row.calls:,}",
        render_tokens(row.tokens - row.output_tokens),
        render_tokens(row.cached_tokens),
        render_tokens(row.output_tokens),
        render_usd(row.cost_micro_usd),
        held_back,
    ]


def _cap_row(cap: Cap, zone: str, now: int) -> list[str]:
    whose = f"{cap.mind}, {render_plain(cap.conversation)}" if cap.conversation else cap.mind or ALL_MINDS
    opens = render_when(cap.opens_at, zone, now)
    return [whose, cap.window, render_usd(cap.committed), render_usd(cap.cap), render_usd(cap.left), opens]


def _render_pause(pause: CredentialPause, zone: str, now: int) -> str:
    whose = f"The credential of {list_words(pause.minds)}" if pause.minds else "A credential"
    if pause.until is None:
        return f"{whose} is not called with until an operator has mended it ({pause.kind}): {render_plain(pause.reason)}"
    return f"{whose} is called with again {render_when(pause.until, zone, now)} ({pause.kind}): {render_plain(pause.reason)}"
