"""Wiring: `mind demo`: from nothing to a talk with a Persona on this machine, and back to nothing."""

import json
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TypedDict

import click
import trio

from mind_body.cli.chat import converse
from mind_body.cli.sandpit import NAME, YOU, Sandpit, open_sandpit
from mind_body.cli.talk import Line, Talk, open_talk
from mind_body.errors import MindBodyError
from mind_body.matrix.client import MatrixClient
from mind_body.mind.reports import TurnFigures, read_turn_of_event
from mind_body.mind.store import open_mind

ANSWER_S = 300.0
"""The first one also loads the model; a slow machine takes a minute."""
RECEIPT_S = 10.0


class Answer(TypedDict):
    """One reply in `mind demo --json`."""

    room: str
    text: str
    event_id: str
    model_ms: int
    total_ms: int
    tokens_cached: int
    tokens_uncached: int
    session: str


@click.command()
@click.option("--say", multiple=True, metavar="TEXT", help="Say that, print the answer, end; may be repeated. Otherwise: a chat.")
@click.option("--json", "as_json", is_flag=True, help="With --say: print one JSON object with answers and figures.")
@click.option("--keep", type=click.Path(path_type=Path), metavar="DIR", help="Make everything in DIR and leave it there.")
def demo(say: tuple[str, ...], as_json: bool, keep: Path | None) -> None:
    """Talk with a Persona on this machine: a private homeserver, a small local model, nothing left behind.

    No account, no key and no network are needed. Progress goes to stderr, answers to stdout.

    \b
    JSON: {replies: [{room, text, event_id, model_ms (in the model), total_ms (from sending to reading the answer),
           tokens_cached and tokens_uncached (of the prompt, by the model's own figures), session}]}
    """
    if as_json and not say:
        raise click.UsageError("--json needs --say: a chat is not JSON")
    if not say and not sys.stdin.isatty():
        raise click.UsageError('there is no terminal to chat in: say something with --say "hello"')
    if keep is not None and keep.exists() and any(keep.iterdir()):
        raise click.UsageError(f"{keep} is not empty: --keep wants a new directory")
    if keep is not None:
        keep.mkdir(mode=0o700, parents=True, exist_ok=True)
    directory = (keep or Path(tempfile.mkdtemp(prefix="mind-demo-"))).absolute()
    try:
        answers = trio.run(_demo, directory, say, as_json)
    finally:
        if keep is None:
            shutil.rmtree(directory, ignore_errors=True)
    if as_json:
        click.echo(json.dumps({"replies": answers}, indent=2, ensure_ascii=False))
    if keep is not None:
        click.echo(f"Everything is in {directory}; `mind --home {directory}/home history {NAME}` reads it.", err=True)


async def _demo(directory: Path, say: Sequence[str], as_json: bool) -> list[Answer]:
    answers: list[Answer] = []
    interrupted = False
    async with trio.open_nursery() as nursery:

        async def end_on_signal() -> None:
            nonlocal interrupted
            with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
                async for _ in signals:
                    interrupted = True
                    nursery.cancel_scope.cancel()

        nursery.start_soon(end_on_signal)
        async with open_sandpit(directory, _progress()) as pit, MatrixClient() as client:
            account = client.account(pit.homeserver, pit.token)
            talk = await open_talk(account, YOU, lambda words: click.echo(words, err=True), other=pit.mind_user)
            if say:
                answers += await _say_all(pit, talk, say, as_json)
            else:
                click.echo("Say something to Ada. Ctrl-D ends.", err=True)
                await converse(talk, pit.mind_user)
        nursery.cancel_scope.cancel()
    if interrupted and say:
        raise MindBodyError("interrupted; nothing was left behind")
    return answers


async def _say_all(pit: Sandpit, talk: Talk, say: Sequence[str], as_json: bool) -> list[Answer]:
    answers = []
    async with aclosing(talk.listen()) as lines:
        for text in say:
            begun = time.monotonic()
            await talk.say(text)
            line = await _answer(lines, pit.mind_user)
            total_ms = round((time.monotonic() - begun) * 1000)
            if not as_json:
                click.echo(line.text)
            figures = await _figures(pit, line.event_id)
            answers.append(
                Answer(
                    room=talk.room_id,
                    text=line.text,
                    event_id=line.event_id,
                    model_ms=figures.model_ms,
                    total_ms=total_ms,
                    tokens_cached=figures.cached_tokens,
                    tokens_uncached=figures.uncached_tokens,
                    session=figures.session,
                )
            )
            click.echo(f"  answered in {total_ms / 1000:.1f} s", err=True)
    return answers


async def _answer(lines: AsyncIterator[Line], sender: str) -> Line:
    with trio.move_on_after(ANSWER_S):
        async for line in lines:
            if line.sender == sender and line.kind == "text":
                return line
            if line.sender == sender and line.kind == "notice":
                raise MindBodyError(f"she could not answer: {line.text}")
    raise MindBodyError(f"she did not answer within {ANSWER_S:g} s; `mind demo --keep DIR` keeps the journal in DIR/up.log")


async def _figures(pit: Sandpit, event_id: str) -> TurnFigures:
    """Of the turn that said it. The event may be here before its receipt is in the mind."""
    mind = open_mind(pit.home.mind_db(NAME))
    try:
        with trio.fail_after(RECEIPT_S):
            while True:
                with mind.read() as tx:
                    figures = read_turn_of_event(tx, event_id)
                if figures is not None:
                    return figures
                await trio.sleep(0.02)
    except trio.TooSlowError as error:
        raise MindBodyError(f"the mind has no turn for what she said ({event_id})") from error
    finally:
        mind.close()


def _progress() -> Callable[[str], None]:
    """Prints each step with the time since the one before."""
    last = time.monotonic()

    def step(words: str) -> None:
        nonlocal last
        now = time.monotonic()
        click.echo(f"  {words:<46} {now - last:5.1f} s", err=True)
        last = now

    return step
