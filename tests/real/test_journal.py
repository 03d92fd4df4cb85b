"""systemd's own journal has every line as fields, from inside each of the units, and nobody waits for it."""

import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from mind_body.journal_kinds.table import KINDS
from tests.real.parts.scene import wait_until
from tests.real.parts.systemd_bed import ENTER, PATH, Bed
from tests.real.parts.systemd_product import MIND, PYTHON, Product

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("systemd")]
SCRIBE = "/opt/mind-body/scribe.py"
UNITS = ["mind-mouth", "mind-heartbeat", "mind-lease", "mind-persona@", "mind-self@"]
HEAD = """
import os, sys, time
from mind_body.host.journal_native import find_journal
from mind_body.log import Journal, configure
configure("info", "text", find_journal(os.environ))
journal = Journal("persona", sys.argv[1])
"""


@pytest.fixture
def bed(installed: Product) -> Bed:
    return installed.bed


def write_as(bed: Bed, mind: str, code: str, *, unit: str = "mind-persona@scribe.service", how: str = "") -> str:
    """What `code` notes as the main process of this unit, with all that the unit forbids; how that ended."""
    bed.write(SCRIBE, HEAD + code)
    command = f"{PYTHON} {SCRIBE} {mind}"
    start = f"/bin/sh -c '{command} {how}'" if how else command
    bed.drop_in(unit, "Type=exec", "ExecStart=", f"ExecStart={start}", "ExecStopPost=", "Restart=no", "WatchdogSec=0", "Sockets=")
    try:
        bed.systemctl("start", "--no-block", unit)
        wait_until(f"{unit} to end", lambda: bed.state(unit) in {"inactive", "failed"}, 60)
        return bed.show(unit, "Result")["Result"]
    finally:
        bed.systemctl("reset-failed", unit, check=False)
        bed.drop_in(unit)


def lines_of(bed: Bed, mind: str, count: int) -> list[dict[str, Any]]:
    """As `journalctl -o json MIND=…` has them, once there are so many."""
    found: list[dict[str, Any]] = []

    def are_there() -> bool:
        found[:] = bed.journal("--all", f"MIND={mind}")
        return len(found) >= count

    wait_until(f"{count} lines of {mind}", are_there, 20)
    return found


TURN = """
journal.bind(RUN="r1").note("turn.replied", "She answered 1 message.", TURN="t1", CONVERSATION="direct:!r:x", PREFIX_TOKENS=48000,
    CACHE_READ=47000, CACHE_WRITE=900, COST_MICRO_USD=420, REASON="one\\ntwo", DONE=False)
"""


@pytest.mark.parametrize("unit", UNITS)
def test_from_inside_each_unit_a_line_has_its_fields(bed: Bed, unit: str) -> None:
    mind = f"fields-{UNITS.index(unit)}"
    copy = f"scribe-of-{unit.rstrip('@')}.service"  # the daemons of this host go on meanwhile
    text = bed.path(f"/usr/local/lib/systemd/system/{unit}.service").read_text()
    bed.write(f"/etc/systemd/system/{copy}", text.replace("%i", "scribe"))
    assert write_as(bed, mind, TURN, unit=copy) == "success"
    (line,) = lines_of(bed, mind, 1)
    wanted = {
        "MESSAGE": "She answered 1 message.", "PRIORITY": "6", "SYSLOG_IDENTIFIER": "mind", "KIND": "turn.replied",
        "MESSAGE_ID": KINDS["turn.replied"].message_id, "MIND": mind, "ORGAN": "persona", "RUN": "r1", "TURN": "t1",
        "CONVERSATION": "direct:!r:x", "PREFIX_TOKENS": "48000", "CACHE_READ": "47000", "CACHE_WRITE": "900",
        "COST_MICRO_USD": "420", "REASON": "one\ntwo", "DONE": "no",
        "_TRANSPORT": "journal", "_SYSTEMD_UNIT": copy,
    }  # fmt: skip
    assert {name: line.get(name) for name in wanted} == wanted


def test_a_line_that_no_datagram_holds_is_whole(bed: Bed) -> None:
    assert write_as(bed, "large", 'journal.note("said.refused", "It is large.", REASON="x" * 10_000_000)') == "success"
    (line,) = lines_of(bed, "large", 1)
    assert line["REASON"] == "x" * 10_000_000


def test_journalctl_x_explains_a_line(bed: Bed) -> None:
    assert write_as(bed, "explained", TURN) == "success"
    lines_of(bed, "explained", 1)
    told = " ".join(bed.run("journalctl", "-q", "-x", "MIND=explained").stdout.replace("░░", "").split())
    kind = KINDS["turn.replied"]
    assert f"Subject: {kind.what.removesuffix('.')} Defined-By: mind-body {kind.means} What to do: {kind.act}" in told


def test_its_priority_is_what_journalctl_sorts_by(bed: Bed) -> None:
    code = 'for kind in ("heard.mail", "mouth.started", "ear.waits", "ear.storage"): journal.note(kind, "It is so.")'
    assert write_as(bed, "sorted", code) == "success"
    lines_of(bed, "sorted", 4)
    kinds = [[line["KIND"] for line in bed.journal("MIND=sorted", "-p", level)] for level in ("err", "warning", "notice", "info")]
    assert kinds == [
        ["ear.storage"],
        ["ear.waits", "ear.storage"],
        ["mouth.started", "ear.waits", "ear.storage"],
        ["heard.mail", "mouth.started", "ear.waits", "ear.storage"],
    ]


def test_with_stderr_elsewhere_the_journal_has_nothing_and_the_file_has_text(bed: Bed) -> None:
    assert write_as(bed, "elsewhere", TURN, how="2>/run/mind/elsewhere") == "success"
    assert re.match(r"\d{4}-\S+Z info    She answered 1 message\.  \[ORGAN=persona", bed.path("/run/mind/elsewhere").read_text())
    assert bed.journal("MIND=elsewhere") == []


def test_what_an_organ_cannot_begin_with_is_an_error_in_its_own_words(bed: Bed) -> None:
    unit = "mind-persona@nobody.service"
    bed.systemctl("start", "mind-persona@nobody.socket")
    bed.systemctl("start", unit, check=False)
    wait_until(f"{unit} to have failed", lambda: bed.state(unit) == "failed", 30)
    bed.systemctl("reset-failed", unit)
    bed.systemctl("stop", "mind-persona@nobody.socket")
    (line,) = bed.journal(f"_SYSTEMD_UNIT={unit}", "-p", "err")
    assert re.match("mind: .*nobody", line["MESSAGE"])


@contextmanager
def stopped_journald(bed: Bed) -> Iterator[None]:
    """It lives, and reads nothing."""
    (journald,) = bed.processes_of("systemd-journald.service")
    os.kill(journald.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(journald.pid, signal.SIGCONT)


MANY = """
begun = time.monotonic()
for number in range(20_000):
    journal.note("heard.mail", f"Line {number}.", NUMBER=number)
open("/run/mind/many", "w").write(str(time.monotonic() - begun))
"""


def test_a_journal_that_reads_nothing_holds_nobody_up_and_has_the_lines_that_it_took(bed: Bed) -> None:
    with stopped_journald(bed):
        bed.write(SCRIBE, HEAD + MANY)
        unit = "mind-persona@scribe.service"
        bed.drop_in(unit, "Type=exec", "ExecStart=", f"ExecStart={PYTHON} {SCRIBE} full", "ExecStopPost=")
        bed.systemctl("start", "--no-block", unit)
        wait_until("all to be noted", bed.path("/run/mind/many").exists, 30)
        wait_until(f"{unit} to end", lambda: bed.state(unit) == "inactive", 30)
        bed.drop_in(unit)
    assert float(bed.path("/run/mind/many").read_text()) < 10
    found = lines_of(bed, "full", 100)
    assert [line["NUMBER"] for line in found] == [str(number) for number in range(len(found))], (
        "what it took is whole, and in order"
    )


def test_a_journal_that_is_started_anew_loses_no_line(bed: Bed) -> None:
    code = """
for number in range(300):
    journal.note("heard.mail", f"Line {number}.", NUMBER=number)
    time.sleep(0.01)
"""
    bed.write(SCRIBE, HEAD + code)
    unit = "mind-persona@scribe.service"
    bed.drop_in(unit, "Type=exec", "ExecStart=", f"ExecStart={PYTHON} {SCRIBE} anew", "ExecStopPost=")
    bed.systemctl("start", "--no-block", unit)
    lines_of(bed, "anew", 20)
    bed.systemctl("restart", "systemd-journald.service")
    wait_until(f"{unit} to end", lambda: bed.state(unit) == "inactive", 30)
    bed.drop_in(unit)
    found = lines_of(bed, "anew", 300)
    assert [line["NUMBER"] for line in found] == [str(number) for number in range(300)]
    assert {line["_TRANSPORT"] for line in found} == {"journal"}


# -- mind log ----------------------------------------------------------------------------------------------------------


def test_mind_log_shows_when_who_what_and_why_and_plain_journalctl_has_it_all(bed: Bed) -> None:
    code = """
journal.note("run.opened", "She is woken for 1 message.", RUN="r1")
journal.note("turn.failed", "The model call came to nothing.", REASON="network: no route")
Journal("mouth", "shown").note("said.sent", "A message was sent to !r:x.")
"""
    assert write_as(bed, "shown", code) == "success"
    lines = lines_of(bed, "shown", 3)
    shown = [line for line in bed.run(MIND, "log", "shown", "--since=-1h").stdout.splitlines() if "systemd" not in line]
    assert [re.sub(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4}  ", "", line) for line in shown] == [
        "persona    She is woken for 1 message.",
        "persona    The model call came to nothing.  [network: no route]",
        "mouth      A message was sent to !r:x.",
    ]
    assert all(line["MESSAGE"] in words for line, words in zip(lines, shown, strict=True))
    assert bed.run(MIND, "log", "shown", "ORGAN=mouth").stdout.count("\n") == 1
    assert bed.run(MIND, "log", "shown", "-n", "1", "-o", "cat").stdout == "A message was sent to !r:x.\n"
    assert "What to do: Nothing." in bed.run(MIND, "log", "shown", "-x").stdout


def test_mind_log_shows_a_traceback_of_hers_and_what_systemd_has_against_her(bed: Bed) -> None:
    unit = "mind-persona@broken.service"
    assert write_as(bed, "broken", "raise RuntimeError('a fault of ours')", unit=unit) == "exit-code"
    told = wait_until(
        "systemd's word", lambda: (shown := bed.run(MIND, "log", "broken").stdout).count("Failed with result") and shown, 20
    )
    assert re.search(
        r"  persona      File .*\n.*  persona        raise RuntimeError.*\n.*  persona    RuntimeError: a fault of ours", told
    )
    assert re.search(r"  systemd    mind-persona@broken\.service: Failed with result 'exit-code'\.", told)


@contextmanager
def following(bed: Bed, *argv: str) -> Iterator[subprocess.Popen[str]]:
    """It runs in the bed inside the block, and ends as by Ctrl-C."""
    words = ["nsenter", "-t", str(bed.pid), *ENTER, "--", *argv]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env={"PATH": PATH}, start_new_session=True) as process:
        try:
            yield process
        finally:
            os.killpg(process.pid, signal.SIGINT)


def test_mind_log_follows(bed: Bed) -> None:
    # journalctl of systemd 252 passes over the first line of all that a match finds while it follows.
    assert write_as(bed, "followed", 'journal.note("mouth.started", "Before.")') == "success"
    lines_of(bed, "followed", 1)
    with following(bed, MIND, "log", "followed", "--follow") as told:
        assert told.stdout is not None
        # Said again until it is seen: nobody tells when journalctl has begun to follow.
        end, seen = time.monotonic() + 60, ""
        while "She answered 1 message.  [one two]\n" not in seen:
            assert time.monotonic() < end, f"nothing that was noted meanwhile was told:\n{seen}"
            assert write_as(bed, "followed", TURN) == "success"
            while select.select([told.stdout], [], [], 1.0)[0] and (more := os.read(told.stdout.fileno(), 65_536)):
                seen += more.decode()
