"""Wiring: `mind run start`: work for a Self, asked for by the operator at the command line."""

import re

import click

from mind_body.cli.minds import opened
from mind_body.clock import now_ms
from mind_body.config import read_mind_config
from mind_body.control.effective import Held
from mind_body.control.files import read_control
from mind_body.control.people import is_operator
from mind_body.errors import ConfigError, OperatorError
from mind_body.home import Home
from mind_body.host.poke import send_poke
from mind_body.matrix.outside import clean
from mind_body.mind.campaigns import read_campaign
from mind_body.mind.follow_ups import admit_follow_up
from mind_body.mind.records import Membership, Room
from mind_body.mind.rooms import read_members, read_room, read_rooms
from mind_body.mind.store import Transaction
from mind_body.mind.work_records import NewFollowUp
from mind_body.settings import WORKSPACE_PATTERN, MindConfig, PeopleConfig

BRIEF_MAX = 1000
"""Characters, as for a brief that her Persona writes (design §6)."""
WORKSPACE = "main"


@click.command()
@click.argument("name")
@click.option("--brief", required=True, metavar="TEXT", help="What is to be done; her Self reads it verbatim.")
@click.option("--room", "room_id", metavar="ID", help="The room of its thread; else [self] home_room, else an operator's DM.")
@click.option("--workspace", default=WORKSPACE, show_default=True, metavar="W", help="The directory that it works in.")
@click.option("--campaign", metavar="SLUG", help="The open campaign that it belongs to.")
@click.pass_obj
def start(  # noqa: PLR0917 - click passes by name
    home: Home, /, name: str, brief: str, room_id: str | None, workspace: str, campaign: str | None
) -> None:
    """Give NAME's Self a piece of work. It begins when the heartbeat sees it, after what waits already."""
    config = read_mind_config(home, name)
    brief = clean(brief)
    _check(config, name, brief, workspace)
    with opened(home, name) as mind, mind.write() as tx:
        room = _find_room(tx, config, name, room_id)
        asked_by = _find_operator(tx, room, config.people)
        _check_campaign(tx, name, campaign)
        new = NewFollowUp(room.conversation, room.room_id, None, asked_by, brief, workspace, campaign)
        work = admit_follow_up(tx, new, now_ms())
    refused = send_poke(home.heartbeat_socket)
    control = read_control(home, name)
    click.echo(f"The work {work.id} is open for {name}, in '{workspace}'; its thread will be in {room.name or room.room_id}.")
    if isinstance(control, Held):
        click.echo(f"{name} is held: {control.reason} (`mind brake release {name}`)")
    elif refused:
        click.echo("The heartbeat does not run at the moment: it begins when that does.")


def _check(config: MindConfig, name: str, brief: str, workspace: str) -> None:
    if not config.self.enabled:
        raise OperatorError(f"{name} has no Self: [self] enabled is false")
    if not brief.strip() or len(brief) > BRIEF_MAX:
        raise click.UsageError(f"--brief has 1 to {BRIEF_MAX:,} characters; a longer one belongs into a file of the workspace")
    if not re.fullmatch(WORKSPACE_PATTERN, workspace):
        raise click.UsageError("--workspace is a name: letters, digits and '-', at most 64")


def _check_campaign(tx: Transaction, name: str, slug: str | None) -> None:
    """Work for a campaign that is not open would wait for ever."""
    found = read_campaign(tx, slug) if slug is not None else None
    if slug is not None and (found is None or found.closed_at is not None):
        raise OperatorError(f"{name} has no open campaign '{slug}'; `mind campaign list {name}` shows those there are")


def _find_room(tx: Transaction, config: MindConfig, name: str, room_id: str | None) -> Room:
    named = room_id or config.self.home_room
    if named:
        room = read_room(tx, named)
        if room is None or room.membership is not Membership.JOINED:
            raise OperatorError(f"{name} is not in the room {named}: invite her first")
        return room
    direct = [room for room in read_rooms(tx, Membership.JOINED) if room.conversation.startswith("direct:")]
    found = next((room for room in direct if _operators_in(tx, room, config.people)), None)
    if found is None:
        raise ConfigError(f"{name} has no direct conversation with an operator: give --room, or set [self] home_room")
    return found


def _find_operator(tx: Transaction, room: Room, people: PeopleConfig) -> str:
    """In whose name the command line asks: an operator who is in the room, else the first one."""
    named = [one for one in people.operators if not set(one) & set("*?")]
    found = next(iter([*_operators_in(tx, room, people), *named]), None)
    if found is None:
        raise ConfigError("nobody operates her: name somebody in [people] operators")
    return found


def _operators_in(tx: Transaction, room: Room, people: PeopleConfig) -> list[str]:
    """Members are lazy-loaded: who invited her may not have been seen otherwise."""
    there = [user for user, membership in read_members(tx, room.room_id) if membership == "join"]
    return [user for user in (*there, room.invited_by) if user is not None and is_operator(user, people)]
