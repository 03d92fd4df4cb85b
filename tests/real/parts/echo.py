"""Rule: a model that answers every message addressed to it, once, in its room: the scripted half of a scene.

It reads the frames of a turn's input (`mind_body.persona.prompt`) as a real model would have to.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.real.parts.chat_api import Answer, Request, completion

_HEAD = re.compile(r"^\[(m\d+) (r\d+)\] to you from (\S+)")


@dataclass(frozen=True)
class Mail:
    """One message to her, as her input shows it."""

    handle: str
    room: str
    sender: str
    text: str


def read_mail(text: str) -> list[Mail]:
    """The messages addressed to her in one turn's input, in order."""
    found: list[tuple[re.Match[str], list[str]]] = []
    quoting = False
    for line in text.split("\n"):
        if head := _HEAD.match(line):
            found.append((head, []))
            quoting = True
        elif quoting and line.startswith("| "):
            found[-1][1].append(line[2:])
        else:
            quoting = False
    return [Mail(head[1], head[2], head[3], "\n".join(lines)) for head, lines in found]


def echo(request: Request) -> dict[str, Any]:
    """One `say` per room of the batch, with everything that was asked there, in order."""
    rooms: dict[str, list[str]] = {}
    for mail in read_mail(request.last_user):
        rooms.setdefault(mail.room, []).append(mail.text)
    return {"say": [_say(room, "re: " + " ".join(texts)) for room, texts in rooms.items()], "react": []}


def answering(text: Callable[[Mail], str | None]) -> Callable[[Request], Answer]:
    """A step that says `text(mail)` to the newest message of the turn; None is silence."""

    def step(request: Request) -> Answer:
        mail = read_mail(request.last_user)
        words = text(mail[-1]) if mail else None
        return completion(request, json.dumps({"say": [_say(mail[-1].room, words)] if words else [], "react": []}))

    return step


def _say(room: str, text: str) -> dict[str, Any]:
    return {"room": room, "text": text, "reply_to": None, "thread": None}
