"""The organ that works: the real `claude` CLI in its real sandbox, the gateway, and a scripted Messages API."""

import itertools
import json
import threading
from pathlib import Path

import httpx
import pytest
import trio

from mind_body import crash
from mind_body.clock import now_ms
from mind_body.host.process import resident_mb
from mind_body.mind.follow_ups import reopen_follow_up
from mind_body.mind.runs import close_dead_run
from mind_body.model.prefix import canonical_blocks, find_break
from tests.builders import hold, release
from tests.real.parts.messages_api import (
    Answer,
    Calls,
    Fault,
    Held,
    MessagesApi,
    Prose,
    Request,
    call,
    prefix,
)
from tests.real.parts.self_bed import KEY, OPERATOR, SelfBed

pytestmark = pytest.mark.real


async def test_a_piece_of_work_is_done_with_real_tools_and_its_result_is_told(tmp_path: Path, works: MessagesApi) -> None:
    bed = SelfBed(tmp_path, works)
    works.script(
        call("Bash", prefix(20_000), command="echo hello > a.txt"),
        call("Write", prefix(21_000), file_path="/work/site/b.txt", content="there"),
    )
    run = bed.claim()
    await bed.serve()
    ended = bed.read(run)
    assert (ended.outcome, ended.result) == ("result", "I wrote it.")
    assert (bed.work() / "a.txt").read_text() == "hello\n"
    assert (bed.work() / "b.txt").read_text() == "there"


HANDOFF = "Goal: hello. Files: a.txt is written, b.txt is not. Next: write b.txt."


def texts(request: Request) -> str:
    return json.dumps(request.body["messages"], ensure_ascii=False)


def is_flush(request: Request) -> bool:
    return "answer with the hand-off" in texts(request)


def breaks(works: MessagesApi) -> list[str]:
    blocks = [canonical_blocks(request.body) for request in works.requests]
    return [why for before, after in itertools.pairwise(blocks) if (why := find_break(before, after)) is not None]


@pytest.mark.parametrize(
    ("model", "prefixes"),
    [("claude-opus-4-7", (250_000, 290_000, 310_000)), ("claude-sonnet-4-5", (120_000, 135_000, 145_000))],
    ids=["a million", "200k"],
)
async def test_s1_at_the_ceiling_it_is_asked_once_for_its_hand_off_and_the_work_goes_on_from_it(
    tmp_path: Path, works: MessagesApi, model: str, prefixes: tuple[int, ...]
) -> None:
    bed = SelfBed(tmp_path, works, model=model)
    # Until the flush is there, it goes on as it did: how many requests leave before the message is written is the machine's speed.
    last, more = prefixes[-1], call("Bash", prefix(prefixes[-1]), command="sleep 0.2")
    works.default = lambda request: Prose(HANDOFF, usage=prefix(last + 2_000)) if is_flush(request) else more
    works.script(*(call("Bash", prefix(size), command=f"echo {size} >> a.txt") for size in prefixes))
    run = bed.claim()
    await bed.serve()
    assert bed.read(run).outcome == "flushed"
    *before, asked = [is_flush(request) for request in works.requests]
    assert (asked, any(before)) == (True, False), "it is asked once, and its answer is the end"
    assert 3 <= len(before) <= 6
    assert texts(works.requests[-1]).count("answer with the hand-off") == 1
    first_of_next = len(works.requests)
    (handoff,) = bed.rows("SELECT * FROM handoff")
    assert (handoff["text"], handoff["origin"], handoff["cut"]) == (HANDOFF, "model", 0)
    assert not bed.children()
    # By itself the work goes on, in a session of its own.
    works.script(call("Bash", prefix(20_000), command="echo b > b.txt"), Prose("Both are written.", usage=prefix(21_000)))
    later = bed.claim_next()
    await bed.serve()
    assert HANDOFF in texts(works.requests[first_of_next])
    assert "echo 120000" not in texts(works.requests[first_of_next])
    assert (bed.read(later).outcome, bed.read(later).result) == ("result", "Both are written.")
    assert (bed.work() / "a.txt").read_text().split() == [str(size) for size in prefixes]
    assert (bed.work() / "b.txt").exists()
    assert len({row["thread_said"] for row in bed.rows("SELECT thread_said FROM run")}) == 1
    assert [row["state"] for row in bed.rows("SELECT state FROM follow_up ORDER BY id")] == ["done", "done"]
    assert bed.said().count("I am taking this work up again where it was left.") == 1


async def test_what_somebody_says_in_the_middle_of_a_turn_is_there_before_its_next_request(
    tmp_path: Path, works: MessagesApi
) -> None:
    bed = SelfBed(tmp_path, works)
    works.script(call("Bash", prefix(20_000), command="touch running; until [ -e go ]; do sleep 0.05; done"))
    run = bed.claim()
    async with bed.serving():
        await bed.wait_file("running")
        bed.say(run, "Use British spelling, please.")
        await bed.wait_given(run)
        (bed.work() / "go").touch()
    assert len(works.requests) == 2
    assert "Use British spelling, please." in texts(works.requests[1])
    assert f"{OPERATOR} (operator) writes in the thread" in texts(works.requests[1])
    assert bed.read(run).outcome == "result"


async def test_s5_stop_ends_a_long_tool_within_a_second_and_the_work_is_over(tmp_path: Path, works: MessagesApi) -> None:
    bed = SelfBed(tmp_path, works)
    works.script(call("Bash", prefix(20_000), command="touch running; sleep 300 & echo $! > pid; wait"))
    run = bed.claim()
    async with bed.serving():
        await bed.wait_file("pid")
        (sleeper,) = [pid for pid in bed.children() if bed.command(pid) == ["sleep", "300"]]
        began = trio.current_time()
        bed.say(run, "stop", "stop")
        while resident_mb(sleeper):
            await trio.sleep(0.005)
        took = trio.current_time() - began
    assert took < 1.0
    ended = bed.read(run)
    assert (ended.outcome, ended.end_reason) == ("interrupted", f"stopped by {OPERATOR}")
    assert [row["state"] for row in bed.rows("SELECT state FROM follow_up")] == ["done"]
    assert len(works.requests) == 1
    assert not bed.children()


async def test_the_next_brief_goes_into_the_same_process_while_it_is_warm(tmp_path: Path, works: MessagesApi) -> None:
    bed = SelfBed(tmp_path, works, linger_s=60)
    first = bed.claim("One.")
    with trio.move_on_after(60) as scope:
        async with bed.serving():
            await bed.wait_ended(first)
            pids = bed.children()
            second = bed.claim("Two.")
            bed.poke()
            await bed.wait_ended(second)
            assert bed.children() == pids
            other = bed.claim("Three.", workspace="elsewhere")
            bed.poke()
            await bed.wait_ended(other)
            assert not set(bed.children()) & set(pids)
            scope.cancel()
    assert "One." in texts(works.requests[1])
    assert "Two." in texts(works.requests[1])
    assert "You are the working half" not in texts(works.requests[1]).partition("Two.")[2]
    assert "One." not in texts(works.requests[2])
    assert not bed.children()


async def test_the_next_brief_resumes_the_session_where_its_process_is_gone(
    tmp_path: Path, works: MessagesApi, capsys: pytest.CaptureFixture[str]
) -> None:
    bed = SelfBed(tmp_path, works)
    bed.claim("One.")
    await bed.serve()
    second = bed.claim("Two.")
    await bed.serve()
    assert bed.read(second).outcome == "result"
    assert breaks(works) == []
    lines = bed.journal(capsys)
    assert [line["SESSION_CHOICE"] for line in lines if line["kind"] == "self.began"] == ["fresh", "resumed"]
    assert not [line for line in lines if line["kind"] == "prefix.broken"]


async def test_s3_a_session_that_cannot_be_resumed_begins_afresh_with_what_was_left(tmp_path: Path, works: MessagesApi) -> None:
    bed = SelfBed(tmp_path, works)
    bed.claim("One.")
    await bed.serve()
    for transcript in bed.home.self_dir("ada").rglob("*.jsonl"):
        transcript.unlink()
    second = bed.claim("Two.")
    await bed.serve()
    assert bed.read(second).outcome == "result"
    assert "I wrote it." in texts(works.requests[1])
    assert "You are the working half" in texts(works.requests[1])
    assert len(list(bed.home.self_dir("ada").iterdir())) == 1 + 1, "what the first session left goes with the next start"


async def test_told_to_stop_it_ends_its_run_and_its_child_within_five_seconds(tmp_path: Path, works: MessagesApi) -> None:
    bed = SelfBed(tmp_path, works)
    works.script(call("Bash", prefix(20_000), command="touch running; sleep 300"))
    run = bed.claim()
    process = bed.organ()
    process.start()
    await bed.wait_file("running")
    assert process.stop() == 0
    assert bed.read(run).outcome == "held"
    assert bed.processes() == []
    assert [row["origin"] for row in bed.rows("SELECT origin FROM handoff")] == ["record"]
    later = bed.claim_next()
    await bed.serve()
    assert bed.read(later).outcome == "result"
    assert len(bed.rows("SELECT * FROM run")) == 2


async def test_s4_killed_it_leaves_no_process_and_its_run_to_the_heartbeat(tmp_path: Path, works: MessagesApi) -> None:
    bed = SelfBed(tmp_path, works)
    script = "setsid sleep 301 & (setsid sh -c 'trap \"\" TERM INT HUP; sleep 302') & touch running; sleep 303"
    works.script(call("Bash", prefix(20_000), command=script))
    run = bed.claim()
    process = bed.organ()
    process.start()
    await bed.wait_file("running")
    inside = bed.namespaces(bed.processes())
    assert inside
    process.kill()
    with trio.fail_after(5):
        while bed.processes():
            await trio.sleep(0.01)
        while inside & bed.namespaces():
            await trio.sleep(0.01)
    assert bed.read(run).ended_at is None
    # The next start begins with clean directories.
    assert len(list(bed.home.self_dir("ada").iterdir())) == 1
    dead = bed.read(run)
    with bed.mind.write() as tx:
        close_dead_run(tx, dead, "its holder is gone", now_ms())
        reopen_follow_up(tx, run.id)
    later = bed.claim_next()
    await bed.serve()
    assert bed.read(later).outcome == "result"
    assert [path.name for path in bed.home.self_dir("ada").iterdir()] == [
        bed.rows("SELECT id FROM session WHERE ended_at IS NULL")[0]["id"]
    ]


async def test_a_silent_child_lives_for_as_long_as_it_is_wanted(tmp_path: Path, works: MessagesApi) -> None:
    """`--die-with-parent` fires when the thread that forked ends, and trio's worker threads end after ten idle seconds."""
    gate = threading.Event()
    works.script(Held(gate, Prose("Late.")))
    bed = SelfBed(tmp_path, works)
    run = bed.claim()
    async with bed.serving():
        await bed.wait_requests(1)
        pids = bed.children()
        await trio.sleep(30)  # nothing else shows it
        assert bed.children() == pids
        gate.set()
    assert bed.read(run).result == "Late."


async def test_a_held_brake_ends_the_run_in_order_and_it_goes_on_when_released(tmp_path: Path, works: MessagesApi) -> None:
    bed = SelfBed(tmp_path, works)
    works.script(call("Bash", prefix(20_000), command="touch running; sleep 300"))
    run = bed.claim()
    async with bed.serving():
        await bed.wait_file("running")
        hold(bed.home, "ada", "enough for today")
        bed.poke()
    assert (bed.read(run).outcome, bed.read(run).end_reason) == ("held", "held: enough for today")
    assert len(works.requests) == 1
    assert not bed.children()
    release(bed.home, "ada", base_run_usd=20.0)
    later = bed.claim_next()
    await bed.serve()
    assert bed.read(later).outcome == "result"
    # It is the same session, and it knows what it was at.
    assert "touch running" in texts(works.requests[1])


async def test_a_spent_budget_ends_the_run_before_the_call(tmp_path: Path, works: MessagesApi) -> None:
    bed = SelfBed(tmp_path, works)
    release(bed.home, "ada", base_run_usd=0.6)
    usage = {"input_tokens": 1, "cache_creation_input_tokens": 100_000, "cache_read_input_tokens": 0, "output_tokens": 20}
    works.script(call("Bash", usage, command="echo one > a.txt"))
    run = bed.claim()
    await bed.serve()
    assert bed.read(run).outcome == "budget"
    assert len(works.requests) == 1
    assert bed.read(run).cost_micro_usd == 3 + 375_000 + 300


async def test_what_holds_up_one_run_after_the_other_is_said_in_the_thread_once(tmp_path: Path, works: MessagesApi) -> None:
    bed = SelfBed(tmp_path, works)
    works.default = Fault(401, "authentication_error")
    for _ in range(3):
        bed.claim()
        await bed.serve()
    assert [row["outcome"] for row in bed.rows("SELECT outcome FROM run")] == ["authentication"] * 3
    assert sum(said.startswith("I was not let in") for said in bed.said()) == 1
    assert not any(said.startswith("I am taking this work up again") for said in bed.said())


async def test_subagents_ask_side_by_side_and_do_not_count_for_the_size(
    tmp_path: Path, works: MessagesApi, capsys: pytest.CaptureFixture[str]
) -> None:
    bed = SelfBed(tmp_path, works)
    gate = threading.Event()

    def answer(request: Request) -> Answer:
        if "count the" in json.dumps(request.body["messages"][0]):
            return Held(gate, Prose("three", usage=prefix(900_000)))
        done = "three" in texts(request)
        task = {"description": "count", "subagent_type": "general-purpose"}
        calls = Calls(tuple(("Task", {**task, "prompt": f"count the {what}"}) for what in ("dogs", "cats")), usage=prefix(30_000))
        return Prose("six", usage=prefix(31_000)) if done else calls

    works.default = answer
    run = bed.claim()
    async with bed.serving():
        await bed.wait_requests(3)
        gate.set()
    ended, lines = bed.read(run), bed.journal(capsys)
    assert (ended.outcome, ended.result) == ("result", "six")
    assert not [line for line in lines if line["kind"] in {"prefix.broken", "self.flush-asked"}]
    (line,) = [line for line in lines if line["kind"] == "self.ended"]
    assert line["PREFIX_TOKENS"] == 31_000
    assert ended.turns == len(works.requests)
    assert sum(one["requests"] for one in ended.model_usage.values()) == ended.turns


async def test_the_childs_key_is_worth_nothing_outside_its_run_and_the_real_one_is_not_with_it(
    tmp_path: Path, works: MessagesApi
) -> None:
    bed = SelfBed(tmp_path, works, linger_s=60)
    works.script(call("Bash", prefix(20_000), command="env > told; cat /proc/*/environ | tr '\\0' '\\n' >> told"))
    run = bed.claim()
    body = {"model": "claude-sonnet-4-5", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}
    with trio.move_on_after(60) as scope:
        async with bed.serving():
            await bed.wait_ended(run)
            told = dict(line.partition("=")[::2] for line in (bed.work() / "told").read_text().splitlines())
            url, key = told["ANTHROPIC_BASE_URL"], told.get("ANTHROPIC_API_KEY") or bed.key_of_child()
            async with httpx.AsyncClient(trust_env=False) as client:
                refused = await client.post(f"{url}/v1/messages", json=body, headers={"x-api-key": key})
                unknown = await client.post(f"{url}/v1/messages", json=body, headers={"x-api-key": KEY})
            scope.cancel()
    assert (refused.status_code, unknown.status_code) == (403, 401)
    assert len(works.requests) == 2
    assert KEY not in (bed.work() / "told").read_text()
    assert {request.headers["x-api-key"] for request in works.requests} == {KEY}
    kept = [path for path in bed.home.mind_dir("ada").rglob("*") if path.is_file()]
    assert not [path for path in kept if KEY.encode() in path.read_bytes()]


async def test_the_operators_seed_is_what_a_session_begins_with(tmp_path: Path, works: MessagesApi) -> None:
    seed = tmp_path / "seed"
    seed.mkdir()
    (seed / "CLAUDE.md").write_text("Always greet in Welsh.")
    bed = SelfBed(tmp_path, works, config_seed=str(seed))
    run = bed.claim()
    await bed.serve()
    assert bed.read(run).outcome == "result"
    assert "Always greet in Welsh." in texts(works.requests[0])


async def test_a_hand_off_that_is_too_long_is_asked_for_once_more_and_the_shorter_one_is_kept(
    tmp_path: Path, works: MessagesApi
) -> None:
    bed = SelfBed(tmp_path, works)
    long, short = "word " * 5_000, "The shorter one."
    works.script(
        call("Bash", prefix(150_000), command="echo a > a.txt"),
        Prose(long, usage=prefix(151_000)),
        Prose(short, usage=prefix(156_000)),
    )
    run = bed.claim()
    await bed.serve()
    assert bed.read(run).outcome == "flushed"
    assert [row["text"] for row in bed.rows("SELECT text FROM handoff")] == [short]
    assert len(works.requests) == 3
    assert texts(works.requests[2]).count("answer with the hand-off") == 1


async def test_a_cli_that_is_not_there_is_told_and_tried_again(tmp_path: Path, works: MessagesApi) -> None:
    bed = SelfBed(tmp_path, works, cli="/nowhere/claude")
    run = bed.claim()
    await bed.serve()
    ended = bed.read(run)
    assert ended.outcome == "refused"
    assert "/nowhere/claude" in (ended.end_reason or "")
    assert [row["state"] for row in bed.rows("SELECT state FROM follow_up")] == ["open"]


POINTS = sorted(point for point in crash.POINTS if point.startswith("self."))


@pytest.mark.parametrize("point", POINTS)
async def test_killed_at_any_boundary_it_says_and_stores_everything_once(tmp_path: Path, works: MessagesApi, point: str) -> None:
    bed = SelfBed(tmp_path, works)
    flush: list[Answer] = [call("Bash", prefix(150_000), command="echo a > a.txt"), Prose(HANDOFF, usage=prefix(151_000))]
    flushes = point in {"self.flush-asked", "self.handoff-stored"}
    if flushes:
        works.script(*flush)
    run = bed.claim()
    process = bed.organ()
    process.start(crash_at=point)
    await trio.to_thread.run_sync(process.wait_killed)
    with trio.fail_after(5):
        while bed.processes():
            await trio.sleep(0.01)
    found = bed.read(run)
    if point == "self.run-ended":
        assert found.outcome == "result"
    else:
        # What the heartbeat does about it.
        assert (found.ended_at, found.holder is not None) == (None, True)
        with bed.mind.write() as tx:
            assert close_dead_run(tx, found, "its holder is gone", now_ms())
            assert reopen_follow_up(tx, run.id) is not None
        works.forget()
        works.default = Prose("I wrote it.")
        later = bed.claim_next()
        await bed.serve()
        assert bed.read(later).outcome == "result"
        assert (HANDOFF in texts(works.requests[0])) == (point == "self.handoff-stored")
    assert [row["state"] for row in bed.rows("SELECT state FROM follow_up")] == ["done"]
    said = bed.said()
    assert len([words for words in said if words.startswith("I am working on this")]) == 1
    assert said.count("I am done.\n\nI wrote it.") == 1
    assert len(bed.rows("SELECT * FROM handoff")) == (point == "self.handoff-stored")
