"""Wiring: how many examples a property gets, and what every test leaves behind is taken away."""

import shutil
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from mind_body.config import find_home

# No deadline per example: with three workers on two cores a pause is the machine's. `make test-long` asks for the long profile.
settings.register_profile("quick", max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("long", settings.get_profile("quick"), max_examples=500)
settings.load_profile("quick")


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
