"""Wiring: `mind questions`: what the Minds ask their operators, and the answers. The heartbeat acts on them."""

import json
from typing import Any, get_args

import click

from mind_body.cli.minds import find_minds, opened, pick_id
from mind_body.cli.render import list_words, render_plain, render_wait
from mind_body.cli.who import read_user_name
from mind_body.clock import now_ms, render_utc
from mind_body.errors import MindBodyError
from mind_body.home import Home
from mind_body.host.poke import send_poke
from mind_body.mind.asking_records import Answer, Question
from mind_body.mind.questions import answer_question, read_open_questions, read_questions

SHORT = 8
"""Characters of an id that tell a Mind's questions apart."""
_MEANS = {"reopen": "it goes on", "retire": "it is left at that"}
_LIST = "list"


class _Listing(click.Group):
    """`mind questions ada` is `mind questions list ada`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        first = args[0] if args else ""
        if first not in self.commands and first not in ctx.help_option_names:
            args = [_LIST, *args]
        return super().parse_args(ctx, args)


@click.group(cls=_Listing)
def questions() -> None:
    """List what only an operator can decide, or answer it. Whoever is asked in a direct message may answer there just as well.

    \b
        mind questions [NAME...] [--all] [--json]
        mind questions answer NAME ID reopen|retire

    \b
    JSON: {questions: [{mind, id, kind ("breaker": work that came to nothing again and again; "purse": a cap of spending is
        reached), about (the work or the campaign, the day or the month), text (as it was asked), asked_at (ms since 1970),
        room (where, or null), answer (null, "reopen" or "retire"), answered_by (or null), answered_at (or null)}]}
    """


@questions.command(_LIST)
@click.argument("names", nargs=-1, metavar="[NAME...]")
@click.option("--all", "every", is_flag=True, help="Also those that were answered.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def show(home: Home, names: tuple[str, ...], every: bool, as_json: bool) -> None:
    """List the questions that are open, the oldest first."""
    found: list[tuple[str, Question]] = []
    for name in find_minds(home, names):
        try:
            with opened(home, name) as mind, mind.read() as tx:
                found += [(name, one) for one in (read_questions(tx) if every else read_open_questions(tx))]
        except MindBodyError as error:
            click.echo(f"mind: {name} is passed over: {error}", err=True)
    found.sort(key=lambda one: one[1].asked_at)
    if as_json:
        click.echo(json.dumps({"questions": [_as_json(*one) for one in found]}, indent=2, ensure_ascii=False))
        return
    for name, one in found:
        click.echo(_render(name, one))
    if not found:
        click.echo("There is no open question." if not every else "Nothing was ever asked.")


@questions.command()
@click.argument("name")
@click.argument("question_id", metavar="ID")
@click.argument("answer", type=click.Choice(get_args(Answer)))
@click.pass_obj
def answer(home: Home, name: str, question_id: str, answer: Answer) -> None:
    """Answer one: reopen (it goes on) or retire (it is left at that). ID may be a part, as the list shows it."""
    find_minds(home, [name])
    with opened(home, name) as mind, mind.write() as tx:
        known = read_questions(tx)
        one = _pick(name, known, question_id)
        if not answer_question(tx, one.id, answer, read_user_name(), now_ms()):
            raise MindBodyError(f"that question is answered already: {one.answer}, by {one.answered_by}")
    refused = send_poke(home.heartbeat_socket)
    later = "; the heartbeat does not run at the moment, and acts on it when it does" if refused else ""
    click.echo(f"{name}: {_MEANS[answer]}{later}.")


def _pick(name: str, known: list[Question], wanted: str) -> Question:
    """Ids are made by a digest, so that their beginnings differ. An open one is meant rather than one that was answered."""
    meant = pick_id([one.id for one in known if one.answer is None], wanted) or pick_id([one.id for one in known], wanted)
    if not meant:
        raise MindBodyError(f"{name} has no question '{wanted}'; `mind questions {name}` lists them")
    if len(meant) > 1:
        raise MindBodyError(f"'{wanted}' is meant by {list_words(meant)}: give more of the id")
    return next(one for one in known if one.id == meant[0])


def _as_json(name: str, one: Question) -> dict[str, Any]:
    return {
        "mind": name,
        "id": one.id,
        "kind": one.kind,
        "about": one.about,
        "text": one.text,
        "asked_at": one.asked_at,
        "room": one.room_id,
        "answer": one.answer,
        "answered_by": one.answered_by,
        "answered_at": one.answered_at,
    }


def _render(name: str, one: Question) -> str:
    where = f"in {one.room_id}" if one.room_id else "in no room yet: she has no direct conversation with an operator"
    lines = [
        f"{name}  {one.id[:SHORT]}  asked {render_wait(now_ms() - one.asked_at)} ago, {where}",
        f"    {render_plain(one.text)}",
    ]
    if one.answer is None:
        lines.append(f"    `mind questions answer {name} {one.id[:SHORT]} reopen` (or retire)")
    else:
        lines.append(f"    {one.answer}, by {one.answered_by} at {render_utc(one.answered_at or 0)}")
    return "\n".join(lines)
