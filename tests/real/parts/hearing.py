"""Wiring: a home whose mouth is the test's own, without a model: what the fixtures `scene`, `mouth`, `open_scene` are made of."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

from tests.real.parts.organ import Organ
from tests.real.parts.person import Person
from tests.real.parts.scene import Scene
from tests.real.parts.synapse import Homeserver


class OpenScene(Protocol):
    """A home over a homeserver, with these settings of the host, and its mouth, which is not started yet."""

    def __call__(self, homeserver: Homeserver, **host: Any) -> tuple[Scene, Organ]: ...


@contextmanager
def opening_scenes(directory: Path) -> Iterator[OpenScene]:
    """Whatever was opened ends with the block."""
    with ExitStack() as stack:

        def open_scene(homeserver: Homeserver, **host: Any) -> tuple[Scene, Organ]:
            scene = Scene(homeserver, directory, **host)
            stack.callback(scene.close)
            mouth = Organ("mouth", scene.directory)
            stack.callback(mouth.close)
            return scene, mouth

        yield open_scene


def join_room(scene: Scene, person: Person, her: str, *others: Person, **how: Any) -> str:
    """A room that she has joined, with her join heard: nothing of what follows is between invite and join."""
    room = person.create_room(invite=(her, *(one.user_id for one in others)), **how)
    for one in others:
        one.join(room)
    scene.wait_joined("ada", room)
    scene.wait_rows("ada", "no gap", "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM gap)")
    return room
