"""Wiring: `mind runs`, and `mind run`: the work of a Self, seen and steered by the operator."""

import json

import click

from mind_body.cli.minds import find_minds, opened
from mind_body.cli.render import list_words, render_table
from mind_body.cli.run_start import start
from mind_body.cli.run_watch import watch_run
from mind_body.cli.who import read_user_name
from mind_body.cli.work import HEAD, render_json, render_page, render_row
from mind_body.clock import now_ms
from mind_body.config import list_minds
from mind_body.errors import MindBodyError, StorageError
from mind_body.home import Home
from mind_body.host.poke import send_poke
from mind_body.mind.records import Run
from mind_body.mind.steers import admit_steer
from mind_body.mind.work_reports import find_work, read_report, read_work

AMBIGUOUS_SHOWN = 5


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME...]")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1), help="How many of each Mind's newest.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def runs(home: Home, names: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Show the runs of the Minds' Selves, live and past, newest first.

    \b
    JSON: {runs: [{
        mind, id, state ("opened", "working" or "ended"), cause ("request" or "again"), opened_at, ended_at (ms since 1970, null),
        outcome (null, "result", "flushed", "no-result", "interrupted", "killed", "died", "refused", "held", "budget", "spend",
        "limited", "overloaded", "authentication", "payment" or "dead"), reason, turns, cost_micro_usd, model_usage (by model),
        result (its first 800 bytes),
        work null or {id, state, brief, asked_by, asked_in, room, conversation, workspace, campaign, continues},
        progress (the newest alone) null or {doing, prefix_tokens, ceiling_tokens, window_tokens, at},
        handoff null or {origin ("model" or "record"), cut, text, at}, steers [{kind, sender, state}]}]}
    """
    reports = []
    for name in find_minds(home, names):
        with opened(home, name) as mind, mind.read() as tx:
            reports += [(name, report) for report in read_work(tx, limit)]
    reports.sort(key=lambda one: one[1].run.opened_at, reverse=True)
    if as_json:
        click.echo(json.dumps({"runs": [render_json(name, report) for name, report in reports]}, indent=2, ensure_ascii=False))
        return
    if not reports:
        click.echo("No Self has worked yet. Ask a Persona for work, or `mind run start NAME --brief TEXT`.")
        return
    click.echo(render_table(HEAD, [render_row(name, report, now_ms()) for name, report in reports]))


@click.group()
def run() -> None:
    """Show one run of a Self, stop it, watch it, or start one.

    A run is named by its id, or by enough of the id's beginning or end.
    """


run.add_command(start)


@run.command()
@click.argument("run_id", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, with the keys of `mind runs`.")
@click.pass_obj
def show(home: Home, run_id: str, as_json: bool) -> None:
    """Show everything about one run: brief, state, cost, result, hand-off."""
    name, found = find_run(home, run_id)
    with opened(home, name) as mind, mind.read() as tx:
        report = read_report(tx, found)
    if as_json:
        click.echo(json.dumps(render_json(name, report), indent=2, ensure_ascii=False))
    else:
        click.echo(render_page(name, report, now_ms()))


@run.command()
@click.argument("run_id", metavar="ID")
@click.pass_obj
def stop(home: Home, run_id: str) -> None:
    """Stop a live run, as "stop" in its thread does. What it has done so far stays."""
    name, found = find_run(home, run_id)
    with opened(home, name) as mind, mind.write() as tx:
        asked = admit_steer(tx, found.id, None, "stop", f"{read_user_name()} at the command line", "stop", now_ms())
    if asked is None:
        raise MindBodyError(f"the run {found.id} of {name} has ended already: {found.outcome} ({found.end_reason})")
    refused = send_poke(home.self_socket(name))
    click.echo(f"The run {found.id} of {name} is asked to stop{'; nobody runs her Self at the moment' if refused else ''}.")


@run.command()
@click.argument("run_id", metavar="ID")
@click.pass_obj
def watch(home: Home, run_id: str) -> None:
    """Watch a run until it ends: what it does, how full its context is, what it has cost."""
    name, found = find_run(home, run_id)
    with opened(home, name) as mind:
        ended = watch_run(mind, found)
    click.echo(f"{ended.outcome}: {ended.end_reason}")


def find_run(home: Home, run_id: str) -> tuple[str, Run]:
    """The one run that is meant, and whose. Raises MindBodyError when it is none, or several."""
    found: list[tuple[str, Run]] = []
    for name in list_minds(home):
        try:
            with opened(home, name) as mind, mind.read() as tx:
                found += [(name, run) for run in find_work(tx, run_id)] if run_id else []
        except StorageError as error:
            click.echo(f"{name} is passed over: {error}", err=True)
    if not found:
        raise MindBodyError(f"no run of a Self is named '{run_id}'; `mind runs` lists them")
    if len(found) > 1:
        meant = list_words([run.id for _, run in found[:AMBIGUOUS_SHOWN]])
        raise MindBodyError(f"'{run_id}' names {len(found)} runs, {meant} among them: give more of the id")
    return found[0]
