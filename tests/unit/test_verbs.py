"""The verbs that need no server: what they print, what they refuse, and with which exit code."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import trio
from click.testing import CliRunner

from mind_body.cli.main import VERBS, cli, find_failure
from mind_body.clock import day_start, local_day, now_ms
from mind_body.config import find_home
from mind_body.control.effective import BrakeFile, Held, Released
from mind_body.control.files import read_control, write_brake
from mind_body.errors import EXIT_OPERATOR, ConfigError, MatrixUnreachable, StorageError
from mind_body.host.liveness import take_hold
from mind_body.host.poke import Pokes, open_poke_socket
from mind_body.mind.acks import admit_ack
from mind_body.mind.asking_records import Question
from mind_body.mind.places import admit_turn_places, note_spoken
from mind_body.mind.questions import admit_question, answer_question
from mind_body.mind.records import RunKind
from mind_body.mind.rooms import save_position
from mind_body.mind.runs import adopt_run, live_run, open_run
from mind_body.mind.store import Transaction, open_mind
from tests import builders
from tests.homes import call, make_home

STATUS_KEYS = {
    "name", "brake", "reason", "live_run", "pending", "unsent", "prefix_tokens", "ceiling_tokens", "spend_today_micro_usd", "units",
    "pauses", "encrypted_rooms", "heard_until", "fault", "self_run", "waiting_work", "spend_month_micro_usd", "day_cap_micro_usd",
    "month_cap_micro_usd", "open_questions", "spent_places", "last_reason", "last_at",
}  # fmt: skip
DEADLINE_S = 20.0


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_teaches_itself(verb: str) -> None:
    told = CliRunner().invoke(cli, [verb, "--help"])
    assert told.exit_code == 0, told.output
    assert "Usage:" in told.output


def test_the_list_of_verbs_fits_a_small_terminal_and_imports_none_of_them() -> None:
    script = (
        "import sys; from click.testing import CliRunner; from mind_body.cli.main import cli; "
        "told = CliRunner().invoke(cli, ['--help'], terminal_width=80).output; "
        "assert '...' not in told.partition('Commands:')[2] and max(map(len, told.splitlines())) <= 80, told; "
        "sys.exit(any(name in sys.modules for name in ('trio', 'httpx', 'mind_body.cli.status')))"
    )
    assert os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", script]) == 0


def test_an_organ_imports_only_what_it_needs() -> None:
    script = (
        "import sys; from click.testing import CliRunner; from mind_body.cli.main import cli; "
        "CliRunner().invoke(cli, ['organ', 'mouth', '--help']); "
        "sys.exit(any(name.startswith(('mind_body.cli.demo', 'mind_body.cli.new', 'httpx')) for name in sys.modules))"
    )
    assert os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", script]) == 0


def test_an_unknown_verb_is_a_usage_error(tmp_path: Path) -> None:
    assert call(make_home(tmp_path), "breathe").exit_code == 2


def test_an_unknown_mind_is_a_sentence_that_names_the_known_ones(tmp_path: Path) -> None:
    told = call(make_home(tmp_path, "ada", "bea"), "status", "eve")
    assert told.exit_code == 78
    assert told.stderr.startswith("mind: there is no Mind 'eve'")
    assert "ada, bea" in told.stderr
    assert len(told.stderr.splitlines()) == 1


def test_a_value_of_the_wrong_form_is_told_what_form_is_wanted(tmp_path: Path) -> None:
    home = make_home(tmp_path, "ada")
    home.mind_file("ada").write_text('[matrix]\nhomeserver = "example.org"\nuser = "ada"\n')
    told = call(home, "history", "ada")
    assert told.exit_code == 78
    assert "`matrix.homeserver` must be an address that begins with https:// or http:// (it says 'example.org')" in told.stderr
    assert "`matrix.user` must be a full user id, @name:server (it says 'ada')" in told.stderr
    home.mind_file("ada").write_text("[people]\n")
    assert "`matrix` is missing" in call(home, "history", "ada").stderr


@pytest.mark.parametrize(("option", "value"), [("--user", "ada"), ("--homeserver", "ftp://x"), ("--homeserver", "https://")])
def test_new_told_something_that_cannot_be_is_a_usage_error(tmp_path: Path, option: str, value: str) -> None:
    (tmp_path / "password").write_text("long and hers")
    words = {"--homeserver": "http://127.0.0.1:9", "--user": "@ada:x", "--password-file": str(tmp_path / "password")} | {
        option: value
    }
    home = make_home(tmp_path)
    told = call(home, "new", "ada", "--no-input", *[word for pair in words.items() for word in pair])
    assert told.exit_code == 2
    assert repr(value) in told.stderr
    assert not home.mind_file("ada").exists()


def test_chat_as_somebody_who_is_no_full_id_is_a_usage_error(tmp_path: Path) -> None:
    told = call(make_home(tmp_path, "ada"), "chat", "ada", "--user", "me")
    assert told.exit_code == 2
    assert "me is not a full Matrix id: @name:server" in told.stderr


def test_an_unknown_setting_names_the_nearest_known_one(tmp_path: Path) -> None:
    home = make_home(tmp_path, "ada")
    home.mind_file("ada").write_text(home.mind_file("ada").read_text().replace("# linger_s = 60.0", "linger = 60.0"))
    told = call(home, "history", "ada")
    assert told.exit_code == 78
    assert "`persona.linger` is not a setting; did you mean `linger_s`?" in told.stderr


def test_a_failure_inside_a_nursery_is_still_its_sentence() -> None:
    group = BaseExceptionGroup("nursery", [ExceptionGroup("inner", [MatrixUnreachable("nobody answered")])])
    assert find_failure(group) == ("nobody answered", 1)
    assert find_failure(ConfigError("mend it")) == ("mend it", 78)
    assert find_failure(ExceptionGroup("a fault of ours", [ZeroDivisionError()])) is None


def test_a_directory_that_may_not_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file where a directory should be")
    told = call(
        find_home(str(tmp_path / "home")), "new", "ada", "--no-input", "--homeserver", "http://127.0.0.1:9", "--user", "@ada:x"
    )
    assert told.exit_code != 0
    assert len(told.stderr.splitlines()) <= 4


def _insert_turn(tx: Transaction, turn_id: str, **columns: int) -> None:
    run, session = builders.insert_run(tx), builders.insert_session(tx, f"session-of-{turn_id}", conversation=f"room:{turn_id}")
    builders.insert_turn(tx, turn_id, run_id=run, session_id=session, **columns)


# -- status and history ----------------------------------------------------------------------------------------------------


def test_status_has_its_documented_keys(tmp_path: Path) -> None:
    told = json.loads(call(make_home(tmp_path, "ada"), "status", "--json").stdout)
    assert set(told["minds"][0]) == STATUS_KEYS
    mind = told["minds"][0]
    assert (mind["name"], mind["brake"], mind["pending"], mind["live_run"]) == ("ada", "held", 0, None)
    assert "new: read her files" in mind["reason"]
    daemons = {"mouth": "stopped", "heartbeat": "stopped", "lease": "stopped"}
    assert mind["units"] == {**daemons, "persona": "idle", "self": "idle"}
    assert (mind["day_cap_micro_usd"], mind["month_cap_micro_usd"], mind["spent_places"]) == (10_000_000, 100_000_000, [])


def test_status_says_what_was_spent_in_the_operators_day_against_the_caps(tmp_path: Path) -> None:
    home = make_home(tmp_path, "ada", spend={"day_usd": 2.0})
    home.config_file.write_text('time_zone = "Pacific/Kiritimati"\n')
    midnight = day_start(now_ms(), "Pacific/Kiritimati")
    mind = open_mind(home.mind_db("ada"))
    with mind.write() as tx:
        _insert_turn(tx, "t1", ended_at=midnight, cost_micro_usd=1_500_000)
        _insert_turn(tx, "t2", ended_at=midnight - 1, cost_micro_usd=70_000_000)
    told = json.loads(call(home, "status", "--json").stdout)["minds"][0]
    assert told["spend_today_micro_usd"] == 1_500_000
    assert "$1.50/$2.00" in call(home, "status").stdout
    with mind.write() as tx:
        _insert_turn(tx, "t3", ended_at=midnight + 1, cost_micro_usd=500_000)
    assert "ada has spent what she may in a day: $2.00/$2.00; again" in call(home, "status").stdout
    with mind.write() as tx:
        admit_question(tx, Question("q", "purse", f"day:{local_day(midnight, 'Pacific/Kiritimati')}", "spent", 1, None, None))
    assert json.loads(call(home, "status", "--json").stdout)["minds"][0]["open_questions"] == 1
    assert "a question waits for an operator's answer (`mind questions ada`)" in call(home, "status").stdout
    with mind.write() as tx:
        answer_question(tx, "q", "reopen", "op", 2)
    mind.close()
    assert "$2.00/$4.00" in call(home, "status").stdout
    assert "has spent what she may" not in call(home, "status").stdout


def test_status_names_the_places_where_bots_are_answered_no_more(tmp_path: Path) -> None:
    home = make_home(tmp_path, "ada", persona={"loop_turns": 2})
    mind = open_mind(home.mind_db("ada"))
    with mind.write() as tx:
        for room in ("!bots:x", "!threads:x"):
            builders.insert_room(tx, room)
        for number, (room, thread) in enumerate([("!bots:x", ""), ("!bots:x", "$t"), ("!threads:x", "$t"), ("!threads:x", "$t")]):
            _insert_turn(tx, f"t{number}")
            admit_turn_places(tx, f"t{number}", [(room, thread)])
        note_spoken(tx, "!threads:x", "$another", 1, 1)
    told = json.loads(call(home, "status", "--json").stdout)["minds"][0]
    assert told["spent_places"] == [{"room": "!bots:x", "thread": None}, {"room": "!threads:x", "thread": "$t"}]
    assert "answers no bots until a person speaks there: !bots:x and !threads:x" in call(home, "status").stdout
    with mind.write() as tx:
        note_spoken(tx, "!threads:x", "$t", 2, 1)
        note_spoken(tx, "!bots:x", None, 2, 1)
    mind.close()
    assert json.loads(call(home, "status", "--json").stdout)["minds"][0]["spent_places"] == [], "a person spoke there"


def test_a_host_file_that_cannot_be_used_is_named_and_status_is_shown_all_the_same(tmp_path: Path) -> None:
    home = make_home(tmp_path, "ada")
    home.config_file.write_text('time_zone = "Mars"\n')
    told = call(home, "status")
    assert (told.exit_code, "names no time zone" in told.stderr, "ada" in told.stdout) == (0, True, True)


def test_a_brake_that_holds_by_its_file_is_not_told_to_be_released(tmp_path: Path) -> None:
    home = make_home(tmp_path, "ada", released=True)
    assert "is held" not in call(home, "status").stdout
    (home.control_dir("ada") / "dial.toml").write_text("heet = 1\n")
    assert "did you mean `heat`? (`mind doctor` says what mends it)" in call(home, "status").stdout


def test_status_shows_the_live_run_and_who_runs(tmp_path: Path) -> None:
    home = make_home(tmp_path, "ada", released=True)
    hold = take_hold(home.lock_file("persona", "ada"), "the-holder")
    assert hold is not None
    mind = open_mind(home.mind_db("ada"))
    with mind.write() as tx:
        run = open_run(tx, RunKind.PERSONA_TURN, ["open"], "mention", "she was named", 1000)
        adopt_run(tx, run.id, "the-holder", 1001)
    mind.close()
    told = json.loads(call(home, "status", "--json").stdout)["minds"][0]
    hold.release()
    assert told["live_run"]["cause"] == "mention"
    assert told["live_run"]["held"] is True
    assert told["units"]["persona"] == "running"
    assert told["brake"] == "released"


def test_a_broken_mind_file_hides_no_other_mind(tmp_path: Path) -> None:
    home = make_home(tmp_path, "ada", "bea")
    home.mind_db("ada").write_bytes(b"this is not a database at all, and longer than a header" * 20)
    told = {mind["name"]: mind for mind in json.loads(call(home, "status", "--json").stdout)["minds"]}
    assert "cannot be read as a mind" in told["ada"]["fault"]
    assert told["bea"]["fault"] is None
    assert "mind restore" in call(home, "status").stdout


def test_a_home_too_deep_for_sockets_is_told_where_they_are(tmp_path: Path) -> None:
    home = make_home(tmp_path / ("deep" * 30), "ada")
    assert str(home.run) in call(home, "status").stdout


def test_history_reads_back_what_happened_and_lets_no_escape_sequence_through(tmp_path: Path) -> None:
    home = make_home(tmp_path, "ada")
    mind = open_mind(home.mind_db("ada"))
    with mind.write() as tx:
        tx.execute("INSERT INTO room (room_id, number, membership, conversation) VALUES ('!a', 1, 'joined', 'open')")
        tx.execute(
            "INSERT INTO heard (event_id, room_id, sender, sender_name, kind, body, sent_at, heard_at, standing, reason) "
            "VALUES ('$1', '!a', '@bob:x', 'Bob', 'm.text', 'hi \x1b[31mred', 1, 1, 'mail', 'she was named')"
        )
        tx.execute(
            "INSERT INTO said (id, kind, room_id, event_type, content, queued_at) "
            """VALUES ('s1', 'say', '!a', 'm.room.message', '{"body": "hello Bob"}', 2)"""
        )
    mind.close()
    entries = json.loads(call(home, "history", "ada", "--json").stdout)["entries"]
    assert [(entry["what"], entry["room"], entry["text"]) for entry in entries] == [
        ("heard", "r1", "hi \x1b[31mred"),
        ("said", "r1", "hello Bob"),
    ]
    assert "\x1b" not in call(home, "history", "ada").stdout


# -- brake and dial ------------------------------------------------------------------------------------------------------


def test_the_brake_holds_and_releases_one_or_all(tmp_path: Path) -> None:
    home = make_home(tmp_path, "ada", "bea")
    assert call(home, "brake", "release", "--all").exit_code == 0
    assert isinstance(read_control(home, "ada"), Released)
    assert call(home, "brake", "hold", "ada", "--reason", "she is tired").exit_code == 0
    assert read_control(home, "ada") == Held("she is tired")
    assert isinstance(read_control(home, "bea"), Released)


@pytest.mark.parametrize("words", [("hold",), ("hold", "ada", "--all"), ("release",)])
def test_the_brake_wants_names_or_all_and_not_both(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert call(make_home(tmp_path, "ada"), "brake", *words).exit_code == 2


def test_a_release_that_releases_nothing_says_why(tmp_path: Path) -> None:
    home = make_home(tmp_path, "ada")
    (home.control_dir("ada") / "dial.toml").write_text("heat = 99.0\n")
    told = call(home, "brake", "release", "ada")
    assert told.exit_code == 78
    assert "ada is still held" in told.stderr
    assert "heat" in told.stderr


def test_who_does_not_act_on_the_brake_is_named(tmp_path: Path) -> None:
    home = make_home(tmp_path, "ada", released=True)
    hold = take_hold(home.lock_file("mouth"), "m")
    told = call(home, "brake", "hold", "ada", "--wait", "0.2")
    assert hold is not None
    hold.release()
    assert told.exit_code == 1
    assert "mouth did not tell within 0.2 s" in told.stderr
    assert isinstance(read_control(home, "ada"), Held)


async def test_the_brake_returns_when_the_running_organ_has_acted(tmp_path: Path) -> None:
    home = make_home(tmp_path, "ada", released=True)
    hold = take_hold(home.lock_file("heartbeat"), "h")
    assert hold is not None
    pokes = Pokes(open_poke_socket(home.heartbeat_socket))
    argv = [sys.executable, "-m", "mind_body", "--home", str(home.root), "brake", "hold", "ada", "--wait", str(DEADLINE_S)]
    async with trio.open_nursery() as nursery:
        done = await nursery.start(_start, argv)
        assert await pokes.wait(DEADLINE_S), "the organ was poked"
        assert done.poll() is None, "the verb waits for it"
        mind = open_mind(home.mind_db("ada"))
        with mind.write() as tx:
            admit_ack(tx, "heartbeat", read_control(home, "ada"), 1)
        mind.close()
        with trio.fail_after(DEADLINE_S):
            assert await done.wait() == 0
    pokes.close()
    hold.release()


async def _start(argv: list[str], task_status: Any) -> None:
    await trio.run_process(argv, task_status=task_status)


def test_the_dial_turns_within_its_bounds(tmp_path: Path) -> None:
    home = make_home(tmp_path, "ada", released=True)
    told = json.loads(call(home, "dial", "ada", "--heat", "0.5", "--base-run-usd", "2", "--json").stdout)
    assert told == {"mind": "ada", "heat": 0.5, "base_cooldown_s": 14400.0, "base_run_usd": 2.0}
    control = read_control(home, "ada")
    assert isinstance(control, Released)
    assert (control.dial.cadence_s, control.dial.run_cap) == (28_800.0, 1_000_000)
    refused = call(home, "dial", "ada", "--heat", "3")
    assert refused.exit_code == 2
    assert "heat" in refused.stderr
    assert json.loads(call(home, "dial", "ada", "--json").stdout)["heat"] == 0.5


# -- new -----------------------------------------------------------------------------------------------------------------


def _new(home_directory: Path, *words: str, secret: str = "hers") -> object:
    return CliRunner().invoke(
        cli,
        ["--home", str(home_directory), "new", "ada", "--no-input", "--homeserver", "http://127.0.0.1:9", "--user", "@ada:x.org",
         "--password-file", "-", *words],
        input=secret,
    )  # fmt: skip


def test_new_writes_a_mind_that_every_reader_accepts(tmp_path: Path) -> None:
    told = _new(tmp_path, "--provider", "openai", "--base-url", "http://127.0.0.1:1/v1", "--model", "m", "--operator", "@you:x.org")
    assert getattr(told, "exit_code", None) == 0, told
    home = find_home(str(tmp_path))
    assert oct((home.credentials / "ada.matrix-password").stat().st_mode & 0o777) == "0o600"
    assert (home.credentials / "ada.matrix-password").read_text().strip() == "hers"
    assert isinstance(read_control(home, "ada"), Held), "she is held until somebody releases her"
    mind = json.loads(call(home, "status", "--json").stdout)["minds"][0]
    assert mind["fault"] is None
    assert "hers" not in home.mind_file("ada").read_text()


def test_new_never_overwrites(tmp_path: Path) -> None:
    _new(tmp_path)
    home = find_home(str(tmp_path))
    home.persona_file("ada").write_text("I was edited.")
    write_brake(home, "ada", BrakeFile(state="released"))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    told = _new(tmp_path, secret="another")
    assert getattr(told, "exit_code", None) == 78
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_new_keeps_a_character_that_was_written_before(tmp_path: Path) -> None:
    home = find_home(str(tmp_path))
    home.persona_file("ada").parent.mkdir(parents=True)
    home.persona_file("ada").write_text("You are Ada.")
    assert getattr(_new(tmp_path, "--release"), "exit_code", None) == 0
    assert home.persona_file("ada").read_text() == "You are Ada."
    assert isinstance(read_control(home, "ada"), Released)


def test_new_without_its_answers_and_without_anybody_to_ask_is_a_usage_error(tmp_path: Path) -> None:
    told = CliRunner().invoke(cli, ["--home", str(tmp_path), "new", "ada", "--no-input"])
    assert told.exit_code == 2
    assert "--homeserver is missing" in told.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["Ada", "a b", "-ada", "a" * 33, "../ada", ""])
def test_new_takes_no_name_that_could_not_be_a_file_or_a_unit(tmp_path: Path, name: str) -> None:
    told = CliRunner().invoke(cli, ["--home", str(tmp_path), "new", "--no-input", "--", name])
    assert told.exit_code == 78
    assert list(tmp_path.iterdir()) == []


# -- backup and restore --------------------------------------------------------------------------------------------------


def test_a_backup_brings_the_mind_back_and_the_one_before_is_kept(tmp_path: Path) -> None:
    home = make_home(tmp_path, "ada")
    copy = tmp_path / "copy.db"
    mind = open_mind(home.mind_db("ada"))
    with mind.write() as tx:
        run = open_run(tx, RunKind.PERSONA_TURN, ["open"], "mention", "first", 1000)
    assert call(home, "backup", "ada", "--to", str(copy)).exit_code == 0
    with mind.write() as tx:
        tx.execute("UPDATE run SET reason = 'second' WHERE id = ?", (run.id,))
    mind.close()
    told = call(home, "restore", "ada", str(copy))
    assert told.exit_code == 0, told.output
    assert "Unknown to ada now is everything after 1970-01-01T00:00:01Z" in told.stdout
    mind = open_mind(home.mind_db("ada"))
    with mind.read() as tx:
        assert live_run(tx, RunKind.PERSONA_TURN) is None, "a run of the past has no holder"
        assert [row["reason"] for row in tx.execute("SELECT reason FROM run")] == ["first"]
    mind.close()
    (aside,) = home.mind_dir("ada").glob("mind.db.replaced-*Z")
    mind = open_mind(aside)
    with mind.read() as tx:
        assert [row["reason"] for row in tx.execute("SELECT reason FROM run")] == ["second"]
    mind.close()


def test_a_backup_never_overwrites(tmp_path: Path) -> None:
    home = make_home(tmp_path, "ada")
    (tmp_path / "copy.db").write_text("mine")
    told = call(home, "backup", "ada", "--to", str(tmp_path / "copy.db"))
    assert told.exit_code == 1
    assert (tmp_path / "copy.db").read_text() == "mine"


@pytest.mark.parametrize(("organ", "whose"), [("mouth", None), ("heartbeat", None), ("persona", "ada"), ("self", "ada")])
def test_a_restore_is_refused_while_an_organ_runs(tmp_path: Path, organ: str, whose: str | None) -> None:
    home = make_home(tmp_path, "ada")
    call(home, "backup", "ada", "--to", str(tmp_path / "copy.db"))
    before = home.mind_db("ada").read_bytes()
    hold = take_hold(home.lock_file(organ, whose), "x")
    assert hold is not None
    told = call(home, "restore", "ada", str(tmp_path / "copy.db"))
    hold.release()
    assert told.exit_code == 1
    assert f"the {organ} is running" in told.stderr
    assert home.mind_db("ada").read_bytes() == before


def test_a_restore_of_somebody_elses_mind_changes_nothing(tmp_path: Path) -> None:
    home = make_home(tmp_path, "ada")
    mind = open_mind(home.mind_db("ada"))
    with mind.write() as tx:
        tx.execute("INSERT INTO identity (one, user_id, device_id) VALUES (1, '@eve:elsewhere.org', 'D')")
    mind.close()
    call(home, "backup", "ada", "--to", str(tmp_path / "copy.db"))
    told = call(home, "restore", "ada", str(tmp_path / "copy.db"))
    assert told.exit_code == EXIT_OPERATOR
    assert "the backup is of @eve:elsewhere.org" in told.stderr


def test_status_says_when_she_does_not_hear_her_homeserver(tmp_path: Path) -> None:
    home = make_home(tmp_path, "ada")
    hold = take_hold(home.lock_file("mouth"), "x")
    assert hold is not None
    assert "ada has not heard her homeserver yet: `mind doctor`" in call(home, "status").stdout
    mind = open_mind(home.mind_db("ada"))
    with mind.write() as tx:
        save_position(tx, "s1", now_ms())
    mind.close()
    assert "has not heard" not in call(home, "status").stdout
    hold.release()


@pytest.mark.parametrize("content", [b"", b"not a database" * 100])
def test_a_restore_of_something_else_changes_nothing(tmp_path: Path, content: bytes) -> None:
    home = make_home(tmp_path, "ada")
    (tmp_path / "copy.db").write_bytes(content)
    before = home.mind_db("ada").read_bytes()
    told = call(home, "restore", "ada", str(tmp_path / "copy.db"))
    assert told.exit_code == 78, told.output
    assert "nothing was changed" in told.stderr
    assert home.mind_db("ada").read_bytes() == before
    assert not list(home.mind_dir("ada").glob("*replaced*"))
    assert not (home.mind_dir("ada") / "restoring").exists()


def test_a_mind_that_is_gone_can_be_restored_and_a_stale_log_is_not_applied_to_it(tmp_path: Path) -> None:
    home = make_home(tmp_path, "ada")
    call(home, "backup", "ada", "--to", str(tmp_path / "copy.db"))
    home.mind_db("ada").unlink()
    stale = home.mind_db("ada").with_name("mind.db-wal")
    stale.write_bytes(b"left by a crash")
    assert call(home, "restore", "ada", str(tmp_path / "copy.db")).exit_code == 0
    assert not stale.exists()
    assert json.loads(call(home, "status", "--json").stdout)["minds"][0]["fault"] is None


def test_a_storage_error_is_a_failure_and_a_configuration_error_is_the_operators() -> None:
    assert (StorageError.exit_code, ConfigError.exit_code) == (1, 78)
