"""Wiring: `mind campaign`: what the operator has a Mind work towards. A Persona cannot open one."""

import json
import re
import sys
from collections.abc import Sequence
from typing import Any

import click

from mind_body.cli.minds import find_minds, opened
from mind_body.cli.render import render_plain
from mind_body.cli.who import read_user_name
from mind_body.clock import now_ms, render_utc
from mind_body.errors import MindBodyError
from mind_body.home import Home
from mind_body.host.poke import send_poke
from mind_body.matrix.outside import clean
from mind_body.mind.asking_records import Campaign
from mind_body.mind.campaigns import close_campaign, open_campaign, read_campaign, read_campaigns

SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
"""As a Persona names one when she starts work for it."""
TEXT_MAX = 4000
"""Characters: it stands in her system prompt."""


@click.group()
def campaign() -> None:
    """Open a campaign, close it, list them.

    A campaign is something that a Mind is to work towards: her Persona knows its text while it is open, and work can be started
    for it (`mind run start --campaign`). Where its work comes to nothing again and again, its operators are asked once, for all
    of it together.

    \b
    JSON: {campaigns: [{mind, slug, state ("open" or "closed"), text, opened_by, opened_at (ms since 1970), closed_at (or null)}]}
    """


@campaign.command("open")
@click.argument("name")
@click.argument("slug")
@click.argument("text", nargs=-1, required=True, metavar="TEXT...|-")
@click.pass_obj
def open_one(home: Home, name: str, slug: str, text: tuple[str, ...]) -> None:
    """Open the campaign SLUG for NAME. TEXT is what it is about, at most 4,000 characters; '-' reads it from stdin."""
    find_minds(home, [name])
    told = _read_text(text)
    _check(slug, told)
    with opened(home, name) as mind, mind.write() as tx:
        before = read_campaign(tx, slug)
        if before is not None:
            raise MindBodyError(_refusal(name, before))
        open_campaign(tx, Campaign(slug, told, read_user_name(), now_ms(), None))
    click.echo(f"The campaign '{slug}' of {name} is open. She knows of it from her next turn on.")


@campaign.command()
@click.argument("name")
@click.argument("slug")
@click.pass_obj
def close(home: Home, name: str, slug: str) -> None:
    """Close the campaign SLUG of NAME. No more of its work begins; a run that is live goes on to its end."""
    find_minds(home, [name])
    with opened(home, name) as mind, mind.write() as tx:
        if not close_campaign(tx, slug, now_ms()):
            known = read_campaign(tx, slug)
            closed = f"is closed since {render_utc(known.closed_at or 0)}" if known else "was never opened"
            raise MindBodyError(f"the campaign '{slug}' of {name} {closed}; `mind campaign list {name}` shows those there are")
    send_poke(home.heartbeat_socket)
    click.echo(f"The campaign '{slug}' of {name} is closed.")


@campaign.command("list")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def show(home: Home, name: str, as_json: bool) -> None:
    """List the campaigns of NAME in the order in which they were opened, the closed ones, too."""
    find_minds(home, [name])
    with opened(home, name) as mind, mind.read() as tx:
        found = read_campaigns(tx)
    if as_json:
        click.echo(json.dumps({"campaigns": [_as_json(name, one) for one in found]}, indent=2, ensure_ascii=False))
        return
    for one in found:
        state = f"closed {render_utc(one.closed_at)}" if one.closed_at is not None else "open"
        click.echo(f"{one.slug}  {state}  opened by {one.opened_by} {render_utc(one.opened_at)}\n    {render_plain(one.text)}")
    if not found:
        click.echo(f"{name} has no campaign; `mind campaign open {name} SLUG TEXT` opens one.")


def _read_text(words: Sequence[str]) -> str:
    told = sys.stdin.buffer.read().decode("utf-8", "replace") if tuple(words) == ("-",) else " ".join(words)
    return clean(told).strip()


def _check(slug: str, text: str) -> None:
    if not SLUG.fullmatch(slug):
        raise click.UsageError(f"'{slug}' is not a campaign's name: small letters, digits and '-', at most 64")
    if not text or len(text) > TEXT_MAX:
        raise click.UsageError(f"its text has 1 to {TEXT_MAX:,} characters (this one has {len(text):,})")


def _refusal(name: str, before: Campaign) -> str:
    since = f"the campaign '{before.slug}' of {name}"
    if before.closed_at is None:
        return f"{since} is open already, since {render_utc(before.opened_at)}; nothing was replaced: close it and open another"
    return f"{since} was closed {render_utc(before.closed_at)}; a name is used once: open it as another"


def _as_json(name: str, one: Campaign) -> dict[str, Any]:
    return {
        "mind": name,
        "slug": one.slug,
        "state": "open" if one.closed_at is None else "closed",
        "text": one.text,
        "opened_by": one.opened_by,
        "opened_at": one.opened_at,
        "closed_at": one.closed_at,
    }
