"""Wiring: what every test leaves behind is taken away."""

import shutil
from collections.abc import Iterator

import pytest

from mind_body.config import find_home


@pytest.fixture(autouse=True)
def _no_stray_run_directories(request: pytest.FixtureRequest) -> Iterator[None]:
    """A home in a test's directory is often too deep for sockets: its short run directory (config.find_home) goes with the test."""
    directory = request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else None
    yield
    if directory is None:
        return
    for place in (directory, *directory.glob("*/"), *directory.glob("*/*/")):
        run = find_home(str(place)).run
        if not run.is_relative_to(place.resolve()):
            shutil.rmtree(run, ignore_errors=True)
