"""`mind runs` and `mind run`: what they show of a Self's work, and what they put into the mind."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mind_body.config import find_home
from mind_body.home import Home
from mind_body.host.poke import Pokes, open_poke_socket
from mind_body.mind.follow_ups import admit_follow_up, open_self_run, read_open_follow_ups
from mind_body.mind.handoffs import admit_handoff
from mind_body.mind.records import Run
from mind_body.mind.rooms import save_members
from mind_body.mind.runs import adopt_run
from mind_body.mind.self_runs import end_self_run, record_figures, write_progress
from mind_body.mind.steers import read_queued_steers
from mind_body.mind.store import open_mind
from mind_body.mind.work_records import Handoff, NewFollowUp, Progress, SelfRunEnd
from tests import builders
from tests.homes import call, make_home

BOB = "@bob:mind.localhost"
ROOM, DIRECT = "!yard:mind.localhost", "!bob:mind.localhost"
T = 1_800_000_000_000


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = make_home(tmp_path, "ada", "bea", released=True, self={"enabled": True}, people={"operators": [BOB]})
    with closing(open_mind(made.mind_db("ada"))) as mind, mind.write() as tx:
        for number, (room, conversation) in enumerate([(ROOM, f"room:{ROOM}"), (DIRECT, f"direct:{DIRECT}")], 1):
            builders.insert_room(tx, room, number=number, conversation=conversation)
            save_members(tx, room, [(BOB, "Bob", "join")])
    return made


def work(home: Home, brief: str = "water the \x1b[31mgarden") -> Run:
    """A run that bob asked for, held by a Self that is at it."""
    new = NewFollowUp(f"direct:{DIRECT}", DIRECT, "$asked", BOB, brief, "garden")
    with closing(open_mind(home.mind_db("ada"))) as mind, mind.write() as tx:
        run = open_self_run(tx, admit_follow_up(tx, new, T), "Bob asked for it", T)
        assert run is not None
        adopt_run(tx, run.id, "holder", T)
        write_progress(tx, Progress(run.id, "Bash: ls", 150_000, 300_000, 1_000_000, 420_000, 3, T))
    return run


def end(home: Home, run: Run) -> None:
    usage = {"claude-sonnet-4-5": {"input_tokens": 812, "cost_micro_usd": 420_000}}
    with closing(open_mind(home.mind_db("ada"))) as mind, mind.write() as tx:
        record_figures(tx, run.id, "holder", 3, 420_000, usage)
        admit_handoff(tx, Handoff(run.id, "garden", "Next: the roses.", "model", False, T))
        assert end_self_run(tx, run, "holder", SelfRunEnd("result", "the work is done", "watered", "done"), T + 65_000)


def shown(home: Home, *words: str) -> Any:
    told = call(home, *words, "--json")
    assert told.exit_code == 0, told.output
    return json.loads(told.output)


def test_runs_show_the_live_one_and_the_past_ones_of_every_mind_newest_first(home: Home) -> None:
    past = work(home)
    end(home, past)
    live = work(home)
    found = shown(home, "runs")["runs"]
    assert [(one["mind"], one["id"], one["state"]) for one in found] == [("ada", live.id, "working"), ("ada", past.id, "ended")]
    assert found[0]["progress"]["prefix_tokens"] == 150_000
    assert (found[0]["cost_micro_usd"], found[0]["turns"]) == (420_000, 3), "what it has cost so far"
    assert (found[1]["outcome"], found[1]["result"], found[1]["cost_micro_usd"]) == ("result", "watered", 420_000)
    assert found[1]["handoff"]["text"] == "Next: the roses."
    assert shown(home, "runs", "bea")["runs"] == []
    table = call(home, "runs").output
    assert "150k/300k" in table
    assert "\x1b" not in table


def test_every_key_of_a_run_is_in_the_help(home: Home) -> None:
    work(home)
    told = " ".join(call(home, "runs", "--help").output.split())
    (one,) = shown(home, "runs")["runs"]
    for key in (*one, *one["work"], *one["progress"]):
        assert key in told, key


def test_a_run_is_shown_whole_by_the_end_of_its_id(home: Home) -> None:
    run = work(home)
    end(home, run)
    page = call(home, "run", "show", run.id[-8:]).output
    for words in ("result: the work is done", "water the", BOB, "garden", "Next: the roses.", "$0.42", "claude-sonnet-4-5"):
        assert words in page
    assert shown(home, "run", "show", run.id)["work"]["brief"] == "water the \x1b[31mgarden"


def test_an_id_that_names_no_run_or_several_is_a_sentence(home: Home) -> None:
    first = work(home)
    end(home, first)
    work(home)
    assert "no run of a Self is named 'zzz'" in call(home, "run", "show", "zzz").stderr
    assert "names 2 runs" in call(home, "run", "show", first.id[:4]).stderr
    assert call(home, "run", "show", "").exit_code == 1


def test_stop_queues_one_stop_for_the_run_and_pokes_her_self(home: Home) -> None:
    run = work(home)
    with closing(Pokes(open_poke_socket(home.self_socket("ada")))) as pokes:
        told = call(home, "run", "stop", run.id)
        assert told.exit_code == 0, told.output
        assert pokes.drain()
    with closing(open_mind(home.mind_db("ada"))) as mind, mind.read() as tx:
        (steer,) = read_queued_steers(tx, run.id)
    assert steer.kind == "stop"
    assert "command line" in steer.sender


def test_a_run_that_has_ended_is_not_stopped_again(home: Home) -> None:
    run = work(home)
    end(home, run)
    told = call(home, "run", "stop", run.id)
    assert told.exit_code == 1
    assert "has ended already: result" in told.stderr


def test_watching_a_run_that_has_ended_shows_its_end(home: Home) -> None:
    run = work(home)
    end(home, run)
    told = call(home, "run", "watch", run.id)
    assert told.exit_code == 0
    assert told.output.splitlines()[-1] == "result: the work is done"
    assert "[############............] 150k of 300k" in told.output


def test_work_from_the_command_line_is_open_in_the_operators_name_and_their_direct_message(home: Home) -> None:
    with closing(Pokes(open_poke_socket(home.heartbeat_socket))) as pokes:
        told = call(home, "run", "start", "ada", "--brief", "count the roses", "--workspace", "garden")
        assert told.exit_code == 0, told.output
        assert pokes.drain()
    with closing(open_mind(home.mind_db("ada"))) as mind, mind.read() as tx:
        (found,) = read_open_follow_ups(tx)
    assert (found.brief, found.asked_by, found.asked_in, found.workspace) == ("count the roses", BOB, None, "garden")
    assert (found.room_id, found.conversation) == (DIRECT, f"direct:{DIRECT}")


def test_its_thread_is_in_the_room_that_is_named(home: Home) -> None:
    assert call(home, "run", "start", "ada", "--brief", "x", "--room", ROOM).exit_code == 0
    with closing(open_mind(home.mind_db("ada"))) as mind, mind.read() as tx:
        assert [one.room_id for one in read_open_follow_ups(tx)] == [ROOM]
    refused = call(home, "run", "start", "ada", "--brief", "x", "--room", "!else:where")
    assert (refused.exit_code, "not in the room" in refused.stderr) == (78, True)


@pytest.mark.parametrize("words", [("--brief", "x" * 1001), ("--brief", " "), ("--brief", "x", "--workspace", "../etc"), ()])
def test_a_brief_or_workspace_out_of_bounds_is_a_usage_error(home: Home, words: tuple[str, ...]) -> None:
    assert call(home, "run", "start", "ada", *words).exit_code == 2


def test_a_mind_without_a_self_is_given_no_work(tmp_path: Path) -> None:
    told = call(make_home(tmp_path, "eve"), "run", "start", "eve", "--brief", "x")
    assert (told.exit_code, "[self] enabled is false" in told.stderr) == (78, True)


def test_without_a_direct_conversation_the_way_out_is_named(tmp_path: Path) -> None:
    home = make_home(tmp_path, "ada", self={"enabled": True}, people={"operators": [BOB]})
    told = call(home, "run", "start", "ada", "--brief", "x")
    assert (told.exit_code, "home_room" in told.stderr) == (78, True)


def test_where_no_mind_has_worked_the_first_step_is_named(tmp_path: Path) -> None:
    make_home(tmp_path, "ada")
    assert "mind run start" in call(find_home(str(tmp_path / "home")), "runs").output


def test_status_shows_what_her_self_is_at_what_waits_and_what_it_cost(home: Home) -> None:
    live = work(home)
    (ada, bea) = shown(home, "status")["minds"]
    assert (ada["self_run"]["id"], ada["live_run"], ada["waiting_work"], bea["self_run"]) == (live.id, None, 0, None)
    end(home, live)
    assert call(home, "run", "start", "ada", "--brief", "count the roses").exit_code == 0
    (ada, bea) = shown(home, "status")["minds"]
    assert (ada["self_run"], ada["waiting_work"]) == (None, 1)
    assert "idle, 1 waiting" in call(home, "status").output
