"""What the end of a run writes, what the next one finds, and what a Self keeps on disk. The mind is a real one."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mind_body.control.govern import CONVERSATIONS
from mind_body.errors import ConfigError, SessionGone
from mind_body.home import Home
from mind_body.mind.follow_ups import admit_follow_up, open_self_run, read_follow_up, read_follow_up_of_run, read_open_follow_ups
from mind_body.mind.handoffs import read_handoff
from mind_body.mind.records import Pause, Run, RunKind, Session
from mind_body.mind.runs import adopt_run, close_dead_run, live_run, read_pauses, read_run, set_pause
from mind_body.mind.sessions import open_session, read_open_session
from mind_body.mind.steers import admit_steer
from mind_body.mind.store import Mind
from mind_body.mind.turning import SessionUse
from mind_body.mind.work_records import Handoff, NewFollowUp
from mind_body.model.session import Failed, Limited, Usage
from mind_body.self_run.actions import Outcome, Record, Why
from mind_body.self_run.course import ChildNow, Course, Message
from mind_body.self_run.ending import End, write_end
from mind_body.self_run.figures import Totals
from mind_body.self_run.files import SelfFiles
from mind_body.self_run.launch import SETTINGS_FILE
from mind_body.self_run.left import read_left, render_record
from mind_body.self_run.meter import Meter
from mind_body.self_run.place import Work
from mind_body.self_run.seen import Seen
from mind_body.settings import SelfConfig
from tests.builders import NOW, insert, insert_room, make_home, make_mind, make_new_said

ROOM = "!a:example.org"
HOLDER = "holder-1"
TOTALS = Totals(3, 4_200, {"m": {"cost_micro_usd": 4_200}}, Usage())


@pytest.fixture
def mind(tmp_path: Path) -> Mind:
    made = make_mind(tmp_path)
    with made.write() as tx:
        insert_room(tx, ROOM)
    return made


def begin(mind: Mind, workspace: str = "site", *, holder: str = HOLDER) -> Run:
    """A run that is held, on work of its own, with a session open."""
    with mind.write() as tx:
        new = NewFollowUp(f"room:{ROOM}", ROOM, "$asked", "@bob:example.org", "Do it.", workspace)
        asked = read_open_follow_ups(tx) or [admit_follow_up(tx, new, NOW)]
        run = open_self_run(tx, asked[0], "a test", NOW)
        assert run is not None
        assert adopt_run(tx, run.id, holder, NOW)
        if read_open_session(tx, f"work:{workspace}:room:{ROOM}") is None:
            values: dict[str, Any] = dict.fromkeys(Session.__slots__, 0) | {
                "id": f"s-{run.id}",
                "conversation": f"work:{workspace}:room:{ROOM}",
                "provider": "self:x",
                "model": "m",
            }
            open_session(tx, Session(**values))
    return run


def end_of(mind: Mind, run: Run, outcome: Outcome = Outcome.RESULT, **changes: Any) -> End:
    with mind.read() as tx:
        session = read_open_session(tx, f"work:site:room:{ROOM}")
    assert session is not None
    whole = End(
        run=run,
        record=Record(outcome, "a reason", stays=False),
        why=None,
        totals=TOTALS,
        result="done" if outcome is Outcome.RESULT else None,
        session_id=session.id,
        use=SessionUse("cursor", 50_000, 200_000, 140_000),
        handoff=Handoff(run.id, "site", "from the record", "record", cut=False, at=NOW),
        said=(make_new_said(f"end-{run.id}", ROOM),),
    )
    return replace(whole, **changes)


def write(mind: Mind, end: End, holder: str = HOLDER) -> bool:
    with mind.write() as tx:
        return write_end(tx, end, holder, NOW + 1) is not None


def test_a_result_ends_run_and_work_and_keeps_the_session_at_its_cursor(mind: Mind) -> None:
    run = begin(mind)
    assert write(mind, end_of(mind, run))
    with mind.read() as tx:
        ended, work, session = (
            read_run(tx, run.id),
            read_follow_up_of_run(tx, run.id),
            read_open_session(tx, f"work:site:room:{ROOM}"),
        )
        assert read_handoff(tx, run.id) is None
        assert tx.execute("SELECT count(*) FROM said").fetchone()[0] == 1
    assert ended is not None
    assert (ended.outcome, ended.result, ended.cost_micro_usd, ended.turns) == ("result", "done", 4_200, 3)
    assert ended.model_usage == TOTALS.per_model
    assert work is not None
    assert work.state == "done"
    assert session is not None
    assert (session.cursor, session.prefix_tokens, session.last_turn_id) == ("cursor", 50_000, run.id)


def test_a_run_that_somebody_else_ended_is_left_as_it_is_and_nothing_is_said(mind: Mind) -> None:
    run = begin(mind)
    end = end_of(mind, run)
    with mind.write() as tx:
        found = live_run(tx, RunKind.SELF_RUN)
        assert found is not None
        close_dead_run(tx, found, "its holder is gone", NOW)
    assert not write(mind, end)
    with mind.read() as tx:
        assert tx.execute("SELECT count(*) FROM said").fetchone()[0] == 0
        session = read_open_session(tx, f"work:site:room:{ROOM}")
        assert session is not None
        assert session.cursor is None
        ended = read_run(tx, run.id)
    assert ended is not None
    assert (ended.outcome, ended.cost_micro_usd) == ("dead", 0)


def test_it_is_written_once(mind: Mind) -> None:
    run = begin(mind)
    end = end_of(mind, run)
    assert write(mind, end)
    assert not write(mind, replace(end, record=Record(Outcome.DIED, "again", stays=False)))


def test_flushed_work_goes_on_from_its_own_hand_off_in_a_session_of_its_own(mind: Mind) -> None:
    run = begin(mind)
    with mind.write() as tx:
        insert(tx, "handoff", run_id=run.id, workspace="site", text="from the model", origin="model", cut=0, at=NOW)
    assert write(mind, end_of(mind, run, Outcome.FLUSHED, use=None))
    with mind.read() as tx:
        kept, (work,) = read_handoff(tx, run.id), read_open_follow_ups(tx)
        assert read_open_session(tx, f"work:site:room:{ROOM}") is None
    assert kept is not None
    assert kept.text == "from the model"
    assert work.continues == run.follow_up_id


@pytest.mark.parametrize("outcome", [Outcome.DIED, Outcome.KILLED, Outcome.NO_RESULT, Outcome.REFUSED])
def test_work_that_came_to_nothing_is_open_again_with_what_is_on_record(mind: Mind, outcome: Outcome) -> None:
    run = begin(mind)
    assert write(mind, end_of(mind, run, outcome, use=None))
    with mind.read() as tx:
        kept, (work,) = read_handoff(tx, run.id), read_open_follow_ups(tx)
    assert kept is not None
    assert kept.text == "from the record"
    assert work.id == run.follow_up_id


def pauses(mind: Mind) -> dict[str, Pause]:
    with mind.read() as tx:
        return {pause.cause: pause for pause in read_pauses(tx)}


def test_a_limit_holds_the_self_off_until_its_reset(mind: Mind) -> None:
    run = begin(mind)
    assert write(mind, end_of(mind, run, Outcome.LIMITED, trouble=Limited(NOW + 5_000, "a limit")))
    assert {cause: pause.until for cause, pause in pauses(mind).items()} == {"self-limited": NOW + 5_000}


def test_a_cap_of_the_day_holds_the_self_off_until_it_opens_again_and_the_work_goes_on_then(mind: Mind) -> None:
    run = begin(mind)
    assert write(mind, end_of(mind, run, Outcome.SPEND, trouble=Failed("spend", NOW + 50_000, "her day is spent")))
    assert pauses(mind)["self-spend"].until == NOW + 50_000
    with mind.read() as tx:
        (work,) = read_open_follow_ups(tx)
    assert work.continues == run.follow_up_id


def test_a_conversations_own_cap_holds_off_the_work_of_that_one_until_a_call_is_answered(mind: Mind) -> None:
    cap = Failed("spend", NOW + 50_000, f"$1.00 that {CONVERSATIONS}")
    assert write(mind, end_of(mind, begin(mind), Outcome.SPEND, trouble=cap))
    assert set(pauses(mind)) == {f"self-spend:room:{ROOM}"}
    assert write(mind, end_of(mind, begin(mind), answered=True))
    assert pauses(mind) == {}


def test_a_refused_credential_holds_the_self_off_for_an_hour_or_until_somebody_mends_it(mind: Mind) -> None:
    run = begin(mind)
    assert write(mind, end_of(mind, run, Outcome.AUTHENTICATION, trouble=Failed("authentication", None, "401"), use=None))
    found = pauses(mind)["self-authentication"]
    assert (found.until - found.since, found.since) == (3_600_000, NOW + 1), "a file changed after it mends it"
    with mind.read() as tx:
        assert [work.id for work in read_open_follow_ups(tx)] == [run.follow_up_id]


def test_troubles_in_a_row_wait_longer_each_time_and_an_answer_ends_all_of_them(mind: Mind) -> None:
    overloaded = Failed("overloaded", NOW, "529")
    for strikes, wait_ms in ((1, 5_000), (2, 10_000), (3, 20_000)):
        assert write(mind, end_of(mind, begin(mind), Outcome.OVERLOADED, trouble=overloaded))
        found = pauses(mind)["self-overloaded"]
        assert (found.strikes, found.until - found.since) == (strikes, wait_ms)
    with mind.write() as tx:
        set_pause(tx, Pause("limited", NOW + 9, "her Persona's own"))
    assert write(mind, end_of(mind, begin(mind), Outcome.INTERRUPTED))
    assert "self-overloaded" in pauses(mind), "who stopped it has mended nothing"
    assert write(mind, end_of(mind, begin(mind), answered=True))
    assert set(pauses(mind)) == {"limited"}


def test_work_that_a_person_stopped_is_over(mind: Mind) -> None:
    run = begin(mind)
    assert write(mind, end_of(mind, run, Outcome.INTERRUPTED, why=Why.STOPPED))
    with mind.read() as tx:
        work = read_follow_up(tx, run.follow_up_id or "")
        assert read_handoff(tx, run.id) is None
    assert work is not None
    assert work.state == "done"


def test_work_that_a_person_stopped_is_over_also_where_she_was_held_before_it_ended(mind: Mind) -> None:
    run = begin(mind)
    with mind.write() as tx:
        admit_steer(tx, run.id, "$stop", "stop", "@bob:example.org", "stop", NOW)
    assert write(mind, end_of(mind, run, Outcome.HELD, why=Why.HELD))
    with mind.read() as tx:
        work = read_follow_up(tx, run.follow_up_id or "")
    assert work is not None
    assert work.state == "done"


def test_what_is_left_is_the_newest_hand_off_or_a_result_that_came_after_it(mind: Mind) -> None:
    first = begin(mind)
    write(mind, end_of(mind, first, Outcome.DIED))
    with mind.read() as tx:
        left = read_left(tx, "site", f"room:{ROOM}")
    assert left is not None
    assert left.text == "from the record"
    second = begin(mind)
    write(mind, end_of(mind, second))
    with mind.read() as tx:
        left = read_left(tx, "site", f"room:{ROOM}")
        assert read_left(tx, "elsewhere", f"room:{ROOM}") is None
        assert read_left(tx, "site", "direct:!other") is None, "what one conversation left is not for another"
    assert left is not None
    assert "Do it." in left.text
    assert left.text.endswith("done")


def test_a_hand_off_from_the_record_says_what_is_known(mind: Mind) -> None:
    run = begin(mind)
    with mind.read() as tx:
        asked = read_follow_up_of_run(tx, run.id)
    assert asked is not None
    course = Course(0, Seen("s", 0), Meter(), ChildNow(0))
    course.doing, course.said = "Bash: make test", "Two tests fail."
    text = render_record(Work(run, asked), course, "claude ended by itself (exit 1)", NOW).text
    assert "claude ended by itself (exit 1)" in text
    assert "Bash: make test" in text
    assert text.endswith("Two tests fail.")
    course.given.append(Message("m", "[bob writes]\n| roses", "u1", "steer-1"))
    assert "| roses" in render_record(Work(run, asked), course, "gone", NOW).text


# On disk.


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make_home(tmp_path, "ada")


def test_a_sessions_directory_begins_with_the_operators_seed_without_its_secrets(home: Home, tmp_path: Path) -> None:
    seed = tmp_path / "seed"
    for name in ("CLAUDE.md", ".credentials.json", ".claude.json", "projects/x/old.jsonl", "agents/tester.md"):
        (seed / name).parent.mkdir(parents=True, exist_ok=True)
        (seed / name).write_text(name)
    files = SelfFiles(home, "ada", SelfConfig(config_seed=str(seed)))
    made = files.prepare("s1")
    found = {str(path.relative_to(made)) for path in made.rglob("*") if path.is_file()}
    assert found == {"CLAUDE.md", "agents/tester.md", SETTINGS_FILE}
    assert made.stat().st_mode & 0o777 == 0o700
    (made / "CLAUDE.md").write_text("changed by the session")
    assert (files.prepare("s1") / "CLAUDE.md").read_text() == "changed by the session"


def test_a_seed_that_is_not_there_is_told(home: Home) -> None:
    with pytest.raises(ConfigError, match="config_seed is /nowhere, which is no directory"):
        SelfFiles(home, "ada", SelfConfig(config_seed="/nowhere")).prepare("s1")


def test_a_cut_state_file_of_the_clis_is_moved_aside(home: Home) -> None:
    files = SelfFiles(home, "ada", SelfConfig())
    (files.prepare("s1") / ".claude.json").write_text('{"half": ')
    files.prepare("s1")
    assert not (files.config_dir("s1") / ".claude.json").exists()


def test_what_ended_sessions_left_is_removed(home: Home) -> None:
    files = SelfFiles(home, "ada", SelfConfig())
    for name in ("s1", "s2", "s3"):
        files.prepare(name)
    assert files.sweep({"s2"}) == 2
    assert [path.name for path in home.self_dir("ada").iterdir()] == ["s2"]


def test_a_workspace_is_below_her_state_or_where_the_operator_placed_it(home: Home, tmp_path: Path) -> None:
    placed = tmp_path / "repo"
    files = SelfFiles(home, "ada", SelfConfig(workspaces={"repo": str(placed)}))
    assert files.find_workspace("site") == home.work_dir("ada", "site")
    assert files.find_workspace("site").is_dir()
    with pytest.raises(ConfigError, match="no directory"):
        files.find_workspace("repo")
    placed.mkdir()
    assert files.find_workspace("repo") == placed


def test_a_session_is_resumable_only_where_its_transcript_ends_with_our_last_message(home: Home) -> None:
    files = SelfFiles(home, "ada", SelfConfig())
    project = files.prepare("s1") / "projects" / "-work-site"
    with pytest.raises(SessionGone, match="not there"):
        files.check_resumable("s1", "a2")
    project.mkdir(parents=True)
    (project / "s1.jsonl").write_text('{"type": "user", "uuid": "a1"}\n{"type": "assistant", "uuid": "a2"}\n')
    files.check_resumable("s1", "a2")
    with pytest.raises(SessionGone, match="does not end with"):
        files.check_resumable("s1", "a1")


def test_what_a_child_put_in_the_place_of_a_file_is_not_followed(home: Home, tmp_path: Path) -> None:
    files, precious = SelfFiles(home, "ada", SelfConfig()), tmp_path / "precious"
    precious.write_text("mine")
    made = files.prepare("s1")
    (made / SETTINGS_FILE).unlink()
    (made / SETTINGS_FILE).symlink_to(precious)
    os.mkfifo(made / ".claude.json")
    (made / "projects" / "-work-site").mkdir(parents=True)
    (made / "projects" / "-work-site" / "s1.jsonl").symlink_to("/dev/zero")
    files.prepare("s1")
    assert precious.read_text() == "mine"
    assert not (made / SETTINGS_FILE).is_symlink()
    assert not (made / ".claude.json").exists()
    with pytest.raises(SessionGone, match="not there"):
        files.check_resumable("s1", "a2")


@pytest.mark.parametrize("opens", ["/", "/etc", "/var", "{root}", "{root}/credentials", "{root}/state/ada", "{root}/link"])
def test_nothing_that_would_open_the_mind_is_shown_to_a_self(home: Home, tmp_path: Path, opens: str) -> None:
    assert home.root is not None
    home.credentials.mkdir(exist_ok=True)
    home.mind_dir("ada").mkdir(parents=True, exist_ok=True)
    (home.root / "link").symlink_to(home.credentials)
    place = opens.format(root=home.root)
    refusals: list[Callable[[], object]] = [
        SelfFiles(home, "ada", SelfConfig(binds_readable=(f"{place}:/data",))).find_binds,
        SelfFiles(home, "ada", SelfConfig(binds_writable=(f"{place}:/data",))).find_binds,
        lambda: SelfFiles(home, "ada", SelfConfig(workspaces={"repo": place})).find_workspace("repo"),
        lambda: SelfFiles(home, "ada", SelfConfig(config_seed=place)).prepare("s1"),
    ]
    for refused in refusals:
        with pytest.raises(ConfigError, match="no sandbox may hold that"):
            refused()


def test_what_an_operator_shows_is_shown_from_where_it_lies(home: Home, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (tmp_path / "named").symlink_to(data)
    files = SelfFiles(home, "ada", SelfConfig(binds_readable=(str(tmp_path / "named"),), binds_writable=(f"{data}:/out",)))
    assert files.find_binds() == ({str(data): str(tmp_path / "named")}, {str(data): "/out"})
    for bind in ("data", f"{data}:out", "/nowhere"):
        with pytest.raises(ConfigError, match=r"whole paths|not there"):
            SelfFiles(home, "ada", SelfConfig(binds_readable=(bind,))).find_binds()
