"""docs/systemd.md: every command of it is run, in its order, on a host with a real systemd; its figures are the real ones."""

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.parts_present import ROOT, require_part
from tests.real.parts.exposure import parse_exposure
from tests.real.parts.synapse import Homeserver
from tests.real.parts.systemd_bed import Bed, open_bed
from tests.real.parts.systemd_product import MIND, Product, put_product, shown

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("systemd")]
PAGE = (ROOT / "docs" / "systemd.md").read_text()
PROMPT, EDIT = "# ", "systemctl edit "
ELSEWHERE = ("python3 -m venv", "/opt/mind-body/bin/pip")
"""What the bed has already."""
MAY_END_WITH = {"mind doctor": {0, 78}, "systemctl status": {0, 3}}
EDITOR = "#!/bin/sh\nsed -i '2r /root/drop-in' \"$1\"\n"
"""Puts what is to be added where systemd's own comments say that it belongs."""


@dataclass
class Command:
    """One line that somebody types; what stands below it."""

    text: str
    below: list[str]


def read_commands(page: str) -> Iterator[Command]:
    for block in re.findall(r"^```\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
        command: Command | None = None
        for line in block.splitlines():
            if line.startswith(PROMPT):
                if command is not None:
                    yield command
                command = Command(line.removeprefix(PROMPT), [])
            elif command is not None:
                command.below.append(line)
        if command is not None:
            yield command


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[Bed]:
    """A host with the program under /opt, and the secrets that the page speaks of."""
    require_part("systemd")
    with open_bed(tmp_path / "host", shown()) as bed:
        put_product(bed)
        for name in ("new-password", "new-key"):
            bed.write(f"/root/{name}", name, 0o600)
        bed.write("/root/editor", EDITOR, 0o755)
        yield bed


def run(bed: Bed, command: Command, homeserver: Homeserver) -> str:
    text = command.text.replace("https://matrix.example.org", homeserver.base_url).replace("example.org", homeserver.server_name)
    if text.startswith(EDIT):
        bed.write("/root/drop-in", "\n".join(command.below) + "\n")
        text = f"script -qec {shlex.quote(text.partition('  #')[0])} /dev/null"  # it edits for people alone
    done = bed.run("bash", "-c", text, env={"HOME": "/root", "SYSTEMD_EDITOR": "/root/editor", "TERM": "dumb"}, check=False)
    told = next((codes for words, codes in MAY_END_WITH.items() if text.startswith(words)), {0})
    assert done.returncode in told, f"`{text}` ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


def read_doctor(bed: Bed) -> list[dict[str, Any]]:
    return list(json.loads(bed.run("mind", "doctor", "--json", check=False).stdout)["checks"])


def test_every_command_does_what_it_is_shown_for(bed: Bed, homeserver: Homeserver) -> None:
    bed.write("/root/secret", homeserver.registration_secret, 0o600)
    bea = homeserver.register(homeserver.unique("bea"), "hers and long")
    at = ("--no-input", "--homeserver", homeserver.base_url, "--user", bea.user_id, "--password-file", "-", "--release")
    bed.run(MIND, "--home", "/root/minds", "new", "bea", *at, text=bea.password)
    commands = [one for one in read_commands(PAGE) if not one.text.startswith(ELSEWHERE)]
    assert len(commands) > 40
    for command in commands:
        told = run(bed, command, homeserver)
        if command.text.startswith("mind status") and command.below:
            heads = [line.split() for line in command.below if line.isupper()]
            assert heads[0] == ["MIND", *told.splitlines()[0].split()[1:]]
        if command.text.startswith(EDIT):
            unit = command.text.removeprefix(EDIT).split()[0]
            name = unit if "." in unit else f"{unit}.service"
            written = bed.path(f"/etc/systemd/system/{name}.d/override.conf").read_text()
            assert all(line in written for line in command.below if line), written
        if command.text.startswith("systemctl show -p MemoryMax"):
            assert {"MemoryMax=8589934592", "TasksMax=512"} <= set(told.split()), "one Mind's own instead of what is said of all"
        if command.text == "systemctl try-restart mind-mouth mind-lease && systemctl enable --now mind@bea.target":
            amiss = [check for check in read_doctor(bed) if check["name"].startswith("bea: ") and not check["ok"]]
            assert amiss == [], "she is here as if she had been made here"
    assert not bed.path("/etc/mind").exists()
    assert not bed.path("/var/lib/mind").exists()
    assert bed.run("mind", "status", check=False).returncode != 0, "the last of it was the purge"


@pytest.mark.parametrize("unit", re.findall(r"^\| `(mind-\S+\.service)` \| [\d.]+ \|$", PAGE, re.MULTILINE))
def test_the_figures_are_those_of_the_units(installed: Product, unit: str) -> None:
    told = float(re.search(rf"^\| `{re.escape(unit)}` \| ([\d.]+) \|$", PAGE, re.MULTILINE)[1])  # type: ignore[index]
    version = int(installed.bed.systemctl("--version").split()[1])
    real = parse_exposure(installed.bed.run("systemd-analyze", "security", "--no-pager", unit.replace("@", "@ada")).stdout)
    assert real == told or version != 252, "other versions ask other questions"
