"""Wiring: real parts as fixtures. Each is started once where that is fair, and ends with the tests however they end."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.parts_present import require_part
from tests.real.parts.chat_api import answer_with, open_chat_api
from tests.real.parts.echo import echo
from tests.real.parts.hearing import OpenScene, opening_scenes
from tests.real.parts.house import House
from tests.real.parts.lease import close_leases
from tests.real.parts.messages_api import MessagesApi, Prose, scripted_messages_api
from tests.real.parts.organ import Organ
from tests.real.parts.scene import Scene
from tests.real.parts.synapse import Homeserver, open_homeserver
from tests.real.parts.systemd_bed import open_bed
from tests.real.parts.systemd_product import Product, put_product, shown
from tests.real.parts.systemd_scene import Household


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("early") is None)


@pytest.fixture(scope="session")
def homeserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Homeserver]:
    """One real Synapse without rate limits for all tests of the session; each test makes its own users and rooms."""
    require_part("synapse")
    with open_homeserver(tmp_path_factory.mktemp("synapse")) as server:
        yield server


@pytest.fixture(autouse=True)
def _no_stray_leases() -> Iterator[None]:
    """A lease that a test started for its own halves ends with the test."""
    yield
    close_leases()


@pytest.fixture
def start_homeserver(tmp_path: Path) -> Iterator[Callable[..., Homeserver]]:
    """Starts a Synapse of this test's own: `start_homeserver(limits={...})`. It may be stopped, started and paused."""
    require_part("synapse")
    with ExitStack() as stack:
        numbers = iter(range(100))

        def start(**options: Any) -> Homeserver:
            return stack.enter_context(open_homeserver(tmp_path / f"synapse{next(numbers)}", **options))

        yield start


@pytest.fixture
def house(homeserver: Homeserver, tmp_path: Path) -> Iterator[House]:
    """A household with one released Mind, `ada`, who answers every message by repeating it. Not up yet."""
    with open_chat_api(answer_with(echo)) as api:
        found = House(Scene(homeserver, tmp_path / "home"), api)
        try:
            yield found
        finally:
            found.scene.close()


@pytest.fixture
def open_scene(tmp_path: Path) -> Iterator[OpenScene]:
    with opening_scenes(tmp_path / "home") as found:
        yield found


@pytest.fixture
def _heard(open_scene: OpenScene, homeserver: Homeserver) -> tuple[Scene, Organ]:
    return open_scene(homeserver)


@pytest.fixture
def scene(_heard: tuple[Scene, Organ]) -> Scene:
    """A home without a Mind yet, and without `mind up`: its `mouth` is the test's to start."""
    return _heard[0]


@pytest.fixture
def mouth(_heard: tuple[Scene, Organ]) -> Organ:
    return _heard[1]


@pytest.fixture
def works() -> Iterator[MessagesApi]:
    """The Messages API that a Self's CLI talks to: whatever it is asked, the work is done."""
    require_part("claude")
    require_part("bubblewrap")
    with scripted_messages_api(Prose("I wrote it.")) as api:
        yield api


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """A host with the product installed: a real systemd over a throwaway copy of this one. Its tests are one `xdist_group`."""
    require_part("systemd")
    with open_bed(tmp_path_factory.mktemp("bed") / "host", shown()) as bed:
        put_product(bed)
        product = Product(bed)
        product.mind("install")
        yield product


@pytest.fixture
def household(installed: Product, homeserver: Homeserver) -> Iterator[Household]:
    """Minds of this test's own on that host, and people who talk to them; their model repeats every message."""
    with open_chat_api(answer_with(echo)) as api:
        found = Household(installed, homeserver, api)
        try:
            yield found
        finally:
            found.close()
