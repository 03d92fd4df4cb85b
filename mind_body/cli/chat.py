"""Wiring: `mind chat`: a plain terminal client, for people without Element. Works with pipes: lines in, messages out."""

import re
import sys
from collections.abc import Awaitable, Callable
from typing import IO

import click
import trio

from mind_body.cli.render import render_plain
from mind_body.cli.talk import Line, Talk, open_talk
from mind_body.config import list_minds, read_mind_config
from mind_body.errors import CredentialError, MatrixRefused, MatrixUnauthorised, MindBodyError
from mind_body.home import Home
from mind_body.ids import digest
from mind_body.matrix.client import MatrixClient

_file = click.File("r", encoding="utf-8")


@click.command()
@click.argument("to", metavar="NAME|@USER:SERVER")
@click.option("--user", required=True, metavar="ID", help="Your own account, @name:server.")
@click.option("--homeserver", metavar="URL", help="Your homeserver; default: the Mind's.")
@click.option("--password-file", type=_file, metavar="F", help="Holds your password; otherwise it is asked for.")
@click.option("--token-file", type=_file, metavar="F", help="Holds an access token instead.")
@click.option("--room", metavar="ID", help="Talk in this room, mentioning her; otherwise in a direct message.")
@click.option("--wait", "wait_s", default=180.0, show_default=True, help="With piped input: seconds to wait for the last answer.")
@click.pass_obj
def chat(  # noqa: PLR0917 - click passes by position
    home: Home,
    /,
    to: str,
    user: str,
    homeserver: str | None,
    password_file: IO[str] | None,
    token_file: IO[str] | None,
    room: str | None,
    wait_s: float,
) -> None:
    """Talk with a Mind, or with any Matrix user, line by line. End with Ctrl-D.

    With piped input every line is sent, and the answer to the last one is waited for:

    \b
        echo "Who are you?" | mind chat ada --user @me:example.org --password-file my-password
    """
    if not re.fullmatch(r"@[^:\s]+:\S+", user):
        raise click.UsageError(f"--user {user} is not a full Matrix id: @name:server")
    if not to.startswith("@"):
        settings = read_mind_config(home, to).matrix
        to, homeserver = settings.user, homeserver or settings.homeserver
    if homeserver is None:
        known = ", ".join(list_minds(home)) or "none yet"
        raise click.UsageError(f"--homeserver is missing; without it, name a Mind of this host ({known})")
    if token_file is None and password_file is None and not sys.stdin.isatty():
        raise click.UsageError("stdin is not a terminal: give --password-file or --token-file")
    token = token_file.read().strip() if token_file else None
    password = password_file.read().strip() if password_file else None
    if token is None and password is None:
        password = click.prompt("Your password", hide_input=True)
    trio.run(_chat, homeserver, user, password, token, to, room, wait_s)


async def _chat(  # noqa: PLR0917 - trio.run passes by position
    homeserver: str, user: str, password: str | None, token: str | None, to: str, room: str | None, wait_s: float
) -> None:
    async with MatrixClient() as client:
        if token is None:
            try:
                # One device per account and machine, not one per call.
                device = f"MINDCHAT{digest(user)[:8].upper()}"
                token = (await client.login_password(homeserver, user, password or "", device)).token
            except (MatrixRefused, MatrixUnauthorised) as error:
                raise CredentialError(f"{user} cannot log in: {error}") from error
        account = client.account(homeserver, token)
        talk = await open_talk(account, user, lambda words: click.echo(words, err=True), room_id=room, other=to)
        if sys.stdin.isatty():
            where = f"In {talk.room_id}, where every line mentions {to}" if room else f"A direct message with {to}"
            click.echo(f"{where}. Ctrl-D ends.", err=True)
        await converse(talk, to, mention=to if room else None, wait_s=wait_s)


async def converse(talk: Talk, other: str, *, mention: str | None = None, wait_s: float = 180.0) -> None:
    """Lines of stdin go out, what others say comes in. Ends with stdin; after a pipe, once `other` has answered the last line."""
    answered = trio.Event()
    terminal = sys.stdin.isatty()

    async def show() -> None:
        async for line in talk.listen():
            show_line(line)
            if line.sender == other and line.kind in {"text", "notice"}:
                answered.set()

    async def send(text: str) -> None:
        nonlocal answered
        answered = trio.Event()
        await talk.say(text, mention)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(show)
        any_line = await _send_lines(send)
        if any_line and not terminal:
            with trio.move_on_after(wait_s) as waited:
                await answered.wait()
            if waited.cancelled_caught:
                raise MindBodyError(f"{other} did not answer within {wait_s:g} s; `mind status` and the journal say why")
        nursery.cancel_scope.cancel()


async def _send_lines(send: Callable[[str], Awaitable[None]]) -> bool:
    any_line = False
    while line := await trio.to_thread.run_sync(_read_line, abandon_on_cancel=True):
        if text := line.strip():
            await send(text)
            any_line = True
    return any_line


def _read_line() -> str:
    return sys.stdin.readline()


def show_line(line: Line) -> None:
    name, text = render_plain(" ".join(line.name.split())), render_plain(line.text)
    match line.kind:
        case "notice":
            click.echo(click.style(f"{name} * {text}", dim=True))
        case "reaction":
            click.echo(f"{name} reacts with {text}")
        case "edit":
            click.echo(f"{click.style(name, bold=True)} (edited): {text}")
        case _:
            click.echo(f"{click.style(name, bold=True)}: {text}")
