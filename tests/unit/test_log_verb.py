"""`mind log`: what journalctl is asked for, and what people see of what it answers."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from mind_body.cli.log_lines import plan_log, render_line
from mind_body.cli.main import cli
from tests.homes import call, make_home

AT = "2026-11-30T07:00:00+0100"


def groups_of(arguments: tuple[str, ...]) -> list[list[str]]:
    """The matches, as journalctl reads them: alternatives of fields that must all fit."""
    matches = [word for word in arguments if not word.startswith("-")]
    return [words.split() for words in " ".join(matches).split(" + ")]


def test_her_own_lines_come_first_and_then_what_went_wrong_around_them() -> None:
    own, stderr, manager = groups_of(plan_log("ada", []).arguments)
    assert own == ["MIND=ada"]
    assert stderr == ["_SYSTEMD_UNIT=mind-persona@ada.service", "_SYSTEMD_UNIT=mind-self@ada.service"]
    assert manager[:3] == ["_PID=1", "UNIT=mind-persona@ada.service", "UNIT=mind-self@ada.service"]
    assert set(manager[3:]) == {f"PRIORITY={number}" for number in range(5)}


def test_without_a_name_it_is_every_mind_of_the_host() -> None:
    own, stderr, _ = groups_of(plan_log(None, []).arguments)
    assert own == ["SYSLOG_IDENTIFIER=mind"]
    assert "_SYSTEMD_UNIT=mind-mouth.service" in stderr


def test_without_options_it_is_the_newest_hundred_lines_and_with_any_journalctl_decides() -> None:
    assert "--lines=100" in plan_log("ada", []).arguments
    assert "--lines=100" in plan_log("ada", ["ORGAN=mouth"]).arguments
    assert "--lines=100" not in plan_log("ada", ["--since", "today"]).arguments


def test_a_match_narrows_every_alternative() -> None:
    plan = plan_log("ada", ["ORGAN=mouth", "-f", "RUN=x"])
    assert all(group[-2:] == ["ORGAN=mouth", "RUN=x"] for group in groups_of(plan.arguments))
    assert "-f" in plan.arguments


def test_what_grep_looks_for_is_no_match() -> None:
    assert groups_of(plan_log("ada", ["--grep", "A=b"]).arguments)[0][0] == "A=b"
    assert plan_log("ada", ["-g", "A=b"]).arguments[3:5] == ("-g", "A=b")


@pytest.mark.parametrize(
    "words", [["-o", "cat"], ["-ojson"], ["-fo", "short"], ["--output=json"], ["--output", "json"], ["-xojson"]]
)
def test_a_form_that_was_asked_for_is_journalctls_own(words: list[str]) -> None:
    plan = plan_log("ada", words)
    assert not plan.ours
    assert not any(word.startswith("--output=") and word not in words for word in plan.arguments)


@pytest.mark.parametrize("words", [["-x"], ["-fx"], ["--catalog"], ["-xe"]])
def test_explanations_are_journalctls_with_full_dates(words: list[str]) -> None:
    plan = plan_log("ada", words)
    assert not plan.ours
    assert "--output=short-iso" in plan.arguments


@pytest.mark.parametrize("words", [["-f"], ["-n5"], ["-p", "err"], ["-gox"], ["-Sox"], ["--since=-1h"], ["-uox"], ["-b", "-1"]])
def test_everything_else_is_shown_as_ours(words: list[str]) -> None:
    plan = plan_log("ada", words)
    assert plan.ours
    assert "--output=json" in plan.arguments


@given(words=st.lists(st.from_regex(r"-{1,2}[a-z][a-z=-]{0,12}|[a-z0-9 :-]{1,10}", fullmatch=True)))
def test_every_option_is_passed_on_in_its_order(words: list[str]) -> None:
    passed = iter(plan_log("ada", words).arguments)
    assert all(word in passed for word in words)


def line_of(**entry: Any) -> str:
    return render_line(entry, AT, named=True).text


def test_a_line_is_when_who_what_and_why() -> None:
    line = line_of(MIND="ada", ORGAN="persona", MESSAGE="The model call came to nothing.", REASON="network: no route", PRIORITY="4")
    assert line == f"{AT}  persona    The model call came to nothing.  [network: no route]"


def test_a_reason_that_the_sentence_has_is_not_said_twice() -> None:
    assert line_of(ORGAN="mouth", MESSAGE="Queued, because she is asked.", REASON="she is asked").endswith(
        "Queued, because she is asked."
    )


def test_of_every_mind_a_line_says_whose_it_is() -> None:
    entry = {"MIND": "ada", "ORGAN": "mouth", "MESSAGE": "In r1 now."}
    assert render_line(entry, AT, named=False).text == f"{AT}  ada          mouth      In r1 now."


def test_what_a_process_wrote_to_stderr_has_the_organ_of_its_unit() -> None:
    entry = {"_SYSTEMD_UNIT": "mind-persona@ada.service", "MESSAGE": "Traceback (most recent call last):"}
    assert render_line(entry, AT, named=False).text == f"{AT}  ada          persona    Traceback (most recent call last):"


def test_the_managers_lines_are_systemds() -> None:
    assert "  systemd    mind-persona@ada.service: Watchdog timeout" in line_of(
        _PID="1", MESSAGE="mind-persona@ada.service: Watchdog timeout!", PRIORITY="3"
    )


@pytest.mark.parametrize("message", [None, [], [72, 105, 255], ["one", "two"], "a\nb\x1b[2J", 7])
def test_whatever_journalctl_says_of_a_field_it_is_one_line_that_no_terminal_obeys(message: Any) -> None:
    line = line_of(MESSAGE=message, REASON=message, ORGAN=message, PRIORITY=message)
    assert line.isprintable()


JOURNALCTL = f"""#!{sys.executable}
import json, os, sys
if "--fail" in sys.argv:
    sys.exit("Failed to parse timestamp")
if "--output=json" not in sys.argv:
    print("raw:", *sys.argv[1:])
    sys.exit(0)
print("-- Boot 1 --")
for number in range(int(os.environ.get("ENTRIES", "2"))):
    print(json.dumps({{"__REALTIME_TIMESTAMP": "1796025600000000", "MIND": "ada", "ORGAN": "mouth",
                      "MESSAGE": f"Queued {{number}}.", "REASON": "x" * 9000 if number else "it is", "PRIORITY": "6"}}))
"""


@pytest.fixture
def journalctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "bin" / "journalctl"
    program.parent.mkdir()
    program.write_text(JOURNALCTL)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.delenv("MIND_HOME", raising=False)
    return program


def run_log(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "mind_body", "log", *words]
    return subprocess.run(argv, capture_output=True, text=True, check=False, env={**os.environ, "TZ": "UTC", **environment})


@pytest.mark.usefixtures("journalctl")
def test_what_journalctl_finds_is_shown_whole_and_its_own_words_as_they_are() -> None:
    done = run_log("ada", "--since", "today")
    boot, first, second = done.stdout.splitlines()
    assert (done.returncode, done.stderr, boot) == (0, "", "-- Boot 1 --")
    assert first == "2026-11-30T08:00:00+0000  mouth      Queued 0.  [it is]"
    assert second.endswith("x" * 9000 + "]")


@pytest.mark.usefixtures("journalctl")
def test_the_instant_is_the_hosts_own_as_journalctl_has_it() -> None:
    assert "2026-11-30T09:00:00+0100" in run_log("ada", TZ="Europe/Berlin").stdout
    assert "2026-11-30T08:00:00+0000" in run_log("ada", "--utc", TZ="Europe/Berlin").stdout


@pytest.mark.usefixtures("journalctl")
def test_a_form_of_journalctls_is_printed_by_journalctl() -> None:
    done = run_log("ada", "-o", "cat", "--since=today")
    assert done.stdout.startswith("raw: -o cat --since=today MIND=ada + ")
    assert done.returncode == 0


@pytest.mark.usefixtures("journalctl")
def test_what_journalctl_refuses_is_refused_in_its_words_with_its_exit_code() -> None:
    done = run_log("ada", "--fail")
    assert done.returncode == 1
    assert done.stderr == "Failed to parse timestamp\n"


@pytest.mark.usefixtures("journalctl")
def test_who_reads_no_further_ends_it_without_a_traceback() -> None:
    argv = [sys.executable, "-m", "mind_body", "log", "ada"]
    env = {**os.environ, "ENTRIES": "5000"}
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()


def test_under_a_home_it_says_where_the_journal_is(tmp_path: Path) -> None:
    done = call(make_home(tmp_path, "ada"), "log", "ada")
    assert done.exit_code == 1
    assert "where `mind up` has its stderr" in done.stderr
    assert "journalctl --user MIND=ada" in done.stderr


def test_without_journalctl_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("MIND_HOME", raising=False)
    done = CliRunner().invoke(cli, ["log", "ada"])
    assert done.exit_code == 1
    assert "journalctl is not here" in done.stderr


def test_a_name_that_nobody_can_have_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MIND_HOME", raising=False)
    done = CliRunner().invoke(cli, ["log", "Ada"])
    assert done.exit_code == 78
    assert re.search("'Ada' is not a Mind's name", done.stderr)


def test_every_field_that_is_shown_is_asked_for() -> None:
    (asked,) = [word for word in plan_log("ada", []).arguments if word.startswith("--output-fields=")]
    source = Path(sys.modules[render_line.__module__].__file__ or "").read_text()
    assert set(re.findall(r'entry\.get\("(\w+)"\)', source)) == set(asked.partition("=")[2].split(","))
