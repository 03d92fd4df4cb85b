"""The organ that works: the real `claude` CLI in its real sandbox, the gateway, and a scripted Messages API."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from tests.parts_present import require_part
from tests.real.parts.messages_api import MessagesApi, Prose, Request, call, prefix, scripted_messages_api
from tests.real.parts.self_bed import SelfBed

pytestmark = pytest.mark.real


@pytest.fixture(autouse=True)
def part() -> None:
    require_part("claude")
    require_part("bubblewrap")


@pytest.fixture
def api() -> Iterator[MessagesApi]:
    with scripted_messages_api(Prose("I wrote it.")) as scripted:
        yield scripted


async def test_a_piece_of_work_is_done_with_real_tools_and_its_result_is_told(tmp_path: Path, api: MessagesApi) -> None:
    bed = SelfBed(tmp_path, api)
    api.script(
        call("Bash", prefix(20_000), command="echo hello > a.txt"),
        call("Write", prefix(21_000), file_path="/work/site/b.txt", content="there"),
    )
    run = bed.claim()
    with trio.fail_after(40):
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


@pytest.mark.parametrize(
    ("model", "prefixes"),
    [("claude-opus-4-7", (250_000, 290_000, 310_000)), ("claude-sonnet-4-5", (120_000, 135_000, 145_000))],
    ids=["a million", "200k"],
)
async def test_at_the_ceiling_it_is_asked_once_for_its_hand_off_and_the_work_goes_on_from_it(
    tmp_path: Path, api: MessagesApi, model: str, prefixes: tuple[int, ...]
) -> None:
    bed = SelfBed(tmp_path, api, model=model)
    steps = [call("Bash", prefix(size), command=f"echo {size} >> a.txt") for size in prefixes]
    api.script(*steps, Prose(HANDOFF, usage=prefix(prefixes[-1] + 2_000)))
    run = bed.claim()
    with trio.fail_after(60):
        await bed.serve()
    assert bed.read(run).outcome == "flushed"
    assert [is_flush(request) for request in api.requests] == [False, False, False, True]
    assert texts(api.requests[3]).count("answer with the hand-off") == 1
    (handoff,) = bed.rows("SELECT * FROM handoff")
    assert (handoff["text"], handoff["origin"], handoff["cut"]) == (HANDOFF, "model", 0)
    assert not bed.children()
    # By itself the work goes on, in a session of its own.
    api.script(call("Bash", prefix(20_000), command="echo b > b.txt"), Prose("Both are written.", usage=prefix(21_000)))
    later = bed.claim_next()
    with trio.fail_after(60):
        await bed.serve()
    assert HANDOFF in texts(api.requests[4])
    assert "echo 120000" not in texts(api.requests[4])
    assert (bed.read(later).outcome, bed.read(later).result) == ("result", "Both are written.")
    assert (bed.work() / "a.txt").read_text().split() == [str(size) for size in prefixes]
    assert (bed.work() / "b.txt").exists()
    assert len({row["thread_said"] for row in bed.rows("SELECT thread_said FROM run")}) == 1
    assert [row["state"] for row in bed.rows("SELECT state FROM follow_up ORDER BY id")] == ["done", "done"]
    assert bed.said().count("I am taking this work up again where it was left.") == 1
