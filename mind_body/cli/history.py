"""Wiring: `mind history`: what a Mind heard, said and did."""

import json

import click

from mind_body.cli.minds import opened
from mind_body.cli.render import render_plain, render_tokens
from mind_body.clock import render_utc
from mind_body.config import read_mind_config
from mind_body.home import Home
from mind_body.mind.reports import Entry, read_history
from mind_body.money import render_usd


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
