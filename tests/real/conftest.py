"""Wiring: real parts as fixtures. Each is started once where that is fair, and ends with the tests however they end."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from mind_body.cli.homeserver import synapse_is_installed
from tests.real.parts.synapse import Homeserver, open_homeserver

NO_SYNAPSE = "Synapse is not installed: `make venv` brings it"


@pytest.fixture(scope="session")
def homeserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Homeserver]:
    """One real Synapse without rate limits for all tests of the session; each test makes its own users and rooms."""
    if not synapse_is_installed():
        pytest.skip(NO_SYNAPSE)
    with open_homeserver(tmp_path_factory.mktemp("synapse")) as server:
        yield server


@pytest.fixture
def start_homeserver(tmp_path: Path) -> Iterator[Callable[..., Homeserver]]:
    """Starts a Synapse of this test's own: `start_homeserver(limits={...})`. It may be stopped, started and paused."""
    if not synapse_is_installed():
        pytest.skip(NO_SYNAPSE)
    with ExitStack() as stack:
        numbers = iter(range(100))

        def start(**options: Any) -> Homeserver:
            return stack.enter_context(open_homeserver(tmp_path / f"synapse{next(numbers)}", **options))

        yield start
