"""Wiring: what nearly every scene begins with: a household, a scripted model, one Mind, somebody who talks to her."""

from functools import cached_property
from typing import Any

from tests.real.parts.chat_api import ChatApi
from tests.real.parts.person import Event, Person
from tests.real.parts.scene import Scene


class House:
    """`her` and `bob` come into being when they are first named; settings have to be given before."""

    def __init__(self, scene: Scene, api: ChatApi) -> None:
        self.scene = scene
        self.api = api
        self.tables: dict[str, dict[str, Any]] = {}

    @cached_property
    def her(self) -> str:
        """The user id of `ada`."""
        return self.scene.add_mind("ada", base_url=self.api.base_url, tables=self.tables)

    @cached_property
    def bob(self) -> Person:
        return self.scene.person("bob")

    def direct(self) -> str:
        """A DM of bob's with her; `mind up` must be running."""
        return self.joined(self.bob.create_room(invite=(self.her,), direct=True))

    def joined(self, room: str) -> str:
        self.scene.wait_joined("ada", room)
        return room

    def public(self, *others: Person) -> str:
        """A public room that she came to by herself: only what is addressed to her is mail there."""
        room = self.bob.create_room(public=True)
        for other in others:
            other.join(room)
        her_client = self.her_client()
        her_client.join(room)
        return self.joined(room)

    def her_client(self) -> Person:
        """Her own account at a second device."""
        account = self.scene.homeserver.login(self.her.partition(":")[0][1:], "her long password")
        return self.scene.homeserver.person_of(account)

    def answers(self, room: str, count: int = 1, deadline_s: float = 60.0) -> list[str]:
        return self.bob.wait_text(room, self.her, count, deadline_s)

    def rest(self) -> None:
        self.scene.wait_idle("ada")

    def events_of_hers(self, room: str) -> list[Event]:
        return self.bob.messages(room, self.her)

    def asked_of_the_model(self) -> list[str]:
        """The newest input of every model request so far."""
        return [request.last_user for request in self.api.requests]
