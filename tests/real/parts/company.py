"""Wiring: several Minds in one house that talk with each other and with people; what all of them have heard, and what they asked.

The scripted model is one for all: it knows who asks by the first words of her system part. A second account that nobody talks to
reads the rooms back.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from tests.real.parts.chat_api import ChatApi, Request
from tests.real.parts.echo import Mail, read_mail
from tests.real.parts.person import Event, Person
from tests.real.parts.scene import Scene, wait_until

LINGER_S = 60.0
HOST: dict[str, Any] = {"log_format": "json", "start_grace_s": 60.0}
"""A host's settings under which no run dies because the machine is slow."""
_ME = re.compile(r"^You are (\S+), (@\S+) on Matrix\.", re.MULTILINE)

Tables = Mapping[str, dict[str, Any]]
Text = Callable[[str, Mail], str | None]
"""What the Mind of this name says to one message; None is silence."""


class Company:
    """Minds of these names, bob who talks to them, and a witness who only reads. Not up yet."""

    def __init__(self, scene: Scene, api: ChatApi, *names: str, tables: Tables | None = None) -> None:
        self.scene, self.api = scene, api
        self.ids: dict[str, str] = {}
        self.bob: Person = scene.person("bob")
        self.witness: Person = scene.person("witness")
        self._rooms: dict[str, tuple[Person, tuple[str, ...]]] = {}
        """Of each room, who reads it back, and the Minds in it."""
        for name in names:
            self.add(name, tables)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.ids)

    def add(self, name: str, tables: Tables | None = None) -> None:
        """One more Mind, with settings of her own."""
        given = dict(tables or {})
        given["persona"] = {"linger_s": LINGER_S, **given.get("persona", {})}
        self.ids[name] = self.scene.add_mind(name, base_url=self.api.base_url, tables=given)

    def open_room(self, *names: str, public: bool = False) -> str:
        """A room of bob's with these Minds (all, where none is named) and the witness in it; `mind up` must be running."""
        room = self.bob.create_room(invite=(self.witness.user_id,), public=public)
        self.witness.join(room)
        return self.take_in(room, *(names or self.names))

    def take_in(self, room: str, *names: str) -> str:
        """These Minds come into a room of bob's that the witness reads."""
        for name in names:
            self.bob.invite(room, self.ids[name])
        for name in names:
            self.scene.wait_joined(name, room)
        self._rooms[room] = (self.witness, names)
        return room

    def direct(self, name: str, person: Person | None = None) -> str:
        """A DM of bob's with her, or of another person's."""
        who = person or self.bob
        room = who.create_room(invite=(self.ids[name],), direct=True)
        self.scene.wait_joined(name, room)
        self._rooms[room] = (who, (name,))
        return room

    def said(self, room: str, name: str) -> list[str]:
        """What she said there, notices left out, as somebody else reads it."""
        return self._rooms[room][0].texts(room, self.ids[name])

    def notices(self, room: str, name: str) -> list[str]:
        """The fixed sentences of hers there, oldest first."""
        return [one["content"]["body"] for one in self.messages(room, name) if one["content"]["msgtype"] == "m.notice"]

    def messages(self, room: str, name: str) -> list[Event]:
        """All that she said or noticed there."""
        return self._rooms[room][0].messages(room, self.ids[name])

    def asked(self, name: str) -> list[Request]:
        """Her model requests so far."""
        return [request for request in self.api.requests if who_asks(request)[0] == name]

    def turns(self, name: str) -> int:
        return int(self.scene.rows(name, "SELECT count(*) AS n FROM turn WHERE state = 'replied'")[0]["n"])

    def lines(self, kind: str, name: str | None = None) -> list[dict[str, Any]]:
        """The journal's lines of a kind, about her or about anybody."""
        return [line for line in read_lines(self.scene) if line.get("kind") == kind and name in {None, line.get("MIND")}]

    def wait_settled(self, deadline_s: float = 180.0) -> None:
        """Until all Minds have heard all that was said, nobody has anything left to do, and nothing was said meanwhile."""
        wait_until("everybody to have come to rest", self._is_settled, deadline_s)

    def _is_settled(self) -> bool:
        if not all(is_idle(self.scene, name) for name in self.names):
            return False
        before = self._history()
        for room, (_, names) in self._rooms.items():
            if not all(self._has_heard(name, before[room]) and is_idle(self.scene, name) for name in names):
                return False
        return self._history() == before

    def _history(self) -> dict[str, list[tuple[str, str]]]:
        """Of each room, every message's event id and sender."""
        return {
            room: [(one["event_id"], one["sender"]) for one in reader.messages(room)] for room, (reader, _) in self._rooms.items()
        }

    def _has_heard(self, name: str, said: list[tuple[str, str]]) -> bool:
        known = {row["event_id"] for row in self.scene.rows(name, "SELECT event_id FROM heard")}
        return {event for event, sender in said if sender != self.ids[name]} <= known


def read_lines(scene: Scene) -> list[dict[str, Any]]:
    """The journal of a scene with `log_format = "json"`."""
    return [json.loads(line) for line in scene.journal().splitlines() if line.startswith("{") and line.endswith("}")]


def is_idle(scene: Scene, name: str) -> bool:
    """Nothing is pending, running, or waiting to be sent."""
    found = scene.rows(
        name,
        "SELECT (SELECT count(*) FROM heard WHERE standing = 'mail' AND state = 'pending') "
        "+ (SELECT count(*) FROM run WHERE ended_at IS NULL) + (SELECT count(*) FROM gap) "
        "+ (SELECT count(*) FROM said WHERE state IN ('queued', 'attempted')) AS n",
    )
    return bool(found[0]["n"] == 0)


def react(person: Person, room: str, event_id: str, key: str) -> None:
    """A reaction, as Element writes it."""
    person.send(room, {"m.relates_to": {"rel_type": "m.annotation", "event_id": event_id, "key": key}}, kind="m.reaction")


def who_asks(request: Request) -> tuple[str, str]:
    """Name and user id of the Mind whose turn a request is."""
    found = _ME.search(str(request.messages[0]["content"]))
    assert found, "a request without a Mind"
    return found[1], found[2].rstrip(".")


def new_mail(request: Request) -> list[Mail]:
    """What was said to her in this turn, without what a fresh session is told of the past."""
    return read_mail("# Why you are awake" + request.last_user.rpartition("# Why you are awake")[2])


def answer_each(request: Request, text: Text) -> dict[str, Any]:
    """One `say` for every room of the batch, to the newest message there that gets an answer."""
    me, says = who_asks(request)[0], {}
    for mail in new_mail(request):
        words = text(me, mail)
        if words is not None:
            says[mail.room] = {"room": mail.room, "text": words, "reply_to": None, "thread": None}
    return {"say": list(says.values()), "react": []}
