"""A Self before the real lease: what each refusal of the model's comes to, what a cap and a hold do, and what the ledger says."""

import os
import signal
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest
import trio

from mind_body.clock import now_ms
from tests.builders import hold
from tests.real.parts.lease import read_ledger
from tests.real.parts.messages_api import Fault, Held, MessagesApi, Prose, call, prefix
from tests.real.parts.self_bed import KEY, SelfBed
from tests.real.parts.zoo_claude import install_zoo

pytestmark = pytest.mark.real


def ledger(bed: SelfBed, sql: str) -> list[dict[str, Any]]:
    return read_ledger(bed.home, sql)


def stops(bed: SelfBed) -> list[str]:
    """What is wrong with her credential, by the ledger."""
    return [row["kind"] for row in ledger(bed, "SELECT kind FROM pause")]


def pauses(bed: SelfBed) -> dict[str, int]:
    """Cause and end of every pause in her mind."""
    return {row["cause"]: row["until"] for row in bed.rows("SELECT cause, until FROM pause")}


NO = {"x-should-retry": "false"}
HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("fault", "outcome", "stop", "pause", "waits_ms", "said"),
    [
        (Fault(401, "authentication_error"), "authentication", ["authentication"], "authentication", HOUR_MS, "I was not let in"),
        (Fault(402, "billing_error"), "payment", ["payment"], "payment", HOUR_MS, "What I think with is not"),
        (
            Fault(429, "rate_limit_error", headers={"retry-after": "3600"}),
            "limited",
            ["limited"],
            "limited",
            HOUR_MS,
            "I have used",
        ),
        (Fault(500, headers=NO), "no-result", [], "fault", 5_000, "I came to an end"),
        (
            Fault(529, "overloaded_error", headers=NO),
            "overloaded",
            ["overloaded"],
            "overloaded",
            5_000,
            "What I think with is over",
        ),
        (Fault(403, "permission_error"), "authentication", [], "authentication", HOUR_MS, "I was not let in"),
    ],
    ids=["401", "402", "429 with reset", "500", "529", "403"],
)
async def test_m3_every_refusal_of_the_models_is_an_end_of_its_own(
    tmp_path: Path, works: MessagesApi, fault: Fault, outcome: str, stop: list[str], pause: str, waits_ms: int, said: str
) -> None:
    bed = SelfBed(tmp_path, works)
    works.default = fault
    run, began = bed.claim(), now_ms()
    await bed.serve()
    assert bed.read(run).outcome == outcome
    assert len(works.requests) == 1, "it is not tried again"
    assert stops(bed) == stop
    assert list(pauses(bed)) == [f"self-{pause}"]
    assert waits_ms <= pauses(bed)[f"self-{pause}"] - began <= waits_ms + 15_000
    assert bed.said()[-1].startswith(said)
    assert bed.rows("SELECT state FROM follow_up ORDER BY id")[-1]["state"] == "open", "it goes on later"
    (row,) = ledger(bed, "SELECT state, cost FROM call WHERE id NOT LIKE '%.2'")
    assert row == {"state": "settled", "cost": 0}


async def test_a_limit_that_the_cli_tells_without_a_request_is_one_and_the_lease_is_told(
    tmp_path: Path, works: MessagesApi
) -> None:
    until_s = now_ms() // 1000 + 3600
    said = {"is_error": True, "terminal_reason": "api_error", "api_error_status": 429, "error": "rate_limit"}
    bed = SelfBed(tmp_path / "home", works, cli=str(install_zoo(tmp_path, limit=until_s, result=said)))
    run = bed.claim()
    await bed.serve()
    assert bed.read(run).outcome == "limited"
    assert pauses(bed) == {"self-limited": until_s * 1000}
    assert ledger(bed, "SELECT kind, until FROM pause") == [{"kind": "limited", "until": until_s * 1000}]


async def test_an_answer_ends_every_pause_of_the_selfs(tmp_path: Path, works: MessagesApi) -> None:
    bed = SelfBed(tmp_path, works)
    works.script(Fault(500, headers=NO))
    bed.claim()
    await bed.serve()
    assert list(pauses(bed)) == ["self-fault"]
    later = bed.claim_next()
    await bed.serve()
    assert bed.read(later).outcome == "result"
    assert pauses(bed) == {}


async def test_a_short_overload_is_waited_out_in_the_run(tmp_path: Path, works: MessagesApi) -> None:
    """The CLI tries again in half a second; the lease says no, and for how long; the child waits that long."""
    bed = SelfBed(tmp_path, works)
    works.script(Fault(529, "overloaded_error", headers={"retry-after": "3"}))
    run = bed.claim()
    await bed.serve()
    assert bed.read(run).outcome == "result"
    first, second = ledger(bed, "SELECT at FROM call WHERE reserved > 0 ORDER BY at")
    assert second["at"] - first["at"] >= 3_000
    assert len(works.requests) == 2


async def test_a_run_outlives_a_lease_that_dies_and_comes_back(tmp_path: Path, works: MessagesApi) -> None:
    bed = SelfBed(tmp_path, works)
    assert bed.lease is not None
    works.script(call("Bash", prefix(20_000), command="touch running; until [ -e go ]; do sleep 0.05; done"))
    run = bed.claim()
    async with bed.serving():
        await bed.wait_file("running")
        bed.lease.kill()
        (bed.work() / "go").touch()
        await trio.sleep(6)
        assert len(works.requests) == 1, "nothing leaves without a lease"
        bed.lease.start()
    assert bed.read(run).outcome == "result"
    assert ledger(bed, "SELECT count(*) AS n FROM call WHERE state = 'reserved'") == [{"n": 0}]


async def test_a_spent_day_ends_the_run_before_the_call_and_the_work_waits_for_the_next_one(
    tmp_path: Path, works: MessagesApi
) -> None:
    bed = SelfBed(tmp_path, works)
    with bed.home.mind_file("ada").open("a") as file:
        file.write("[spend]\nday_usd = 0.6\n")
    usage = {"input_tokens": 1, "cache_creation_input_tokens": 100_000, "cache_read_input_tokens": 0, "output_tokens": 20}
    works.script(call("Bash", usage, command="echo one > a.txt"))
    run = bed.claim()
    await bed.serve()
    assert bed.read(run).outcome == "spend"
    assert "she may spend in a day" in (bed.read(run).end_reason or "")
    assert len(works.requests) == 1
    assert 0 < pauses(bed)["self-spend"] - now_ms() <= 25 * HOUR_MS
    assert [row["state"] for row in bed.rows("SELECT state FROM follow_up ORDER BY id")] == ["done", "open"]
    assert bed.said()[-1].startswith("I have used up what I may spend for now.")


# A hold.


async def test_what_passes_when_she_is_held_is_broken_off_within_a_second_though_its_child_heeds_nothing(
    tmp_path: Path, works: MessagesApi
) -> None:
    gate = threading.Event()
    works.script(Held(gate, Prose("too late")))
    bed = SelfBed(tmp_path, works)
    run = bed.claim()
    async with bed.serving():
        await bed.wait_requests(1)
        children = bed.children()
        for pid in children:
            os.kill(pid, signal.SIGSTOP)
        assert connections(works) == 1
        hold(bed.home, "ada", "enough")  # without a poke
        held_at = trio.current_time()
        while connections(works):
            await trio.sleep(0.01)
        assert trio.current_time() - held_at < 1.5
        for pid in children:
            os.kill(pid, signal.SIGCONT)
    gate.set()
    assert bed.read(run).outcome == "held"
    assert len(works.requests) == 1
    assert not bed.children()
    assert ledger(bed, "SELECT state FROM call") == [{"state": "reserved"}], "it may be on a bill: it counts whole"


def connections(works: MessagesApi) -> int:
    """Ours to the model's server."""
    port = int(works.url.rpartition(":")[2])
    mine = psutil.Process().net_connections("tcp")
    return sum(bool(one.raddr) and one.raddr.port == port and one.status == psutil.CONN_ESTABLISHED for one in mine)


async def test_no_request_leaves_after_the_hold_also_when_a_tool_ends_in_that_very_second(
    tmp_path: Path, works: MessagesApi
) -> None:
    bed = SelfBed(tmp_path, works)
    works.script(call("Bash", prefix(20_000), command="touch running; until [ -e go ]; do sleep 0.01; done"))
    run = bed.claim()
    async with bed.serving():
        await bed.wait_file("running")
        hold(bed.home, "ada", "enough")
        (bed.work() / "go").touch()  # its next request is there before anybody has looked
    assert bed.read(run).outcome == "held", "and not a refused credential, as its CLI reads it"
    assert "enough" in (bed.read(run).end_reason or "")
    assert len(works.requests) == 1
    assert pauses(bed) == {}


# The ledger.


async def test_the_ledger_knows_every_call_of_a_run_and_what_the_cli_says_beside_it(tmp_path: Path, works: MessagesApi) -> None:
    bed = SelfBed(tmp_path, works)
    works.script(call("Bash", prefix(20_000), command="echo hello > a.txt"))
    first = bed.claim("One.")
    await bed.serve()
    second = bed.claim("Two.")
    await bed.serve()
    for run, requests in ((first, 2), (second, 1)):
        where = f"WHERE run = '{run.id}'"
        calls = ledger(bed, f"SELECT half, conversation, model, answered, state, cost FROM call {where}")
        assert len(calls) == requests
        assert {row["half"] for row in calls} == {"self"}
        assert {row["conversation"] for row in calls} == {run.conversations[0]}
        assert {row["answered"] for row in calls} == {"claude-sonnet-4-5"}
        assert {row["state"] for row in calls} == {"settled"}
        assert sum(row["cost"] for row in calls) == bed.read(run).cost_micro_usd
        (report,) = ledger(bed, f"SELECT ours, theirs FROM report {where}")
        assert report["ours"] == bed.read(run).cost_micro_usd
        assert abs(report["ours"] - report["theirs"]) * 50 <= report["ours"], "within two in a hundred"


async def test_the_real_key_is_in_no_file_of_hers_or_the_leases_and_in_no_line(
    tmp_path: Path, works: MessagesApi, capsys: pytest.CaptureFixture[str]
) -> None:
    bed = SelfBed(tmp_path, works)
    assert bed.lease is not None
    assert bed.lease.process is not None
    works.script(call("Bash", prefix(20_000), command="env > env.txt; cat /proc/*/environ > all.txt; touch running; sleep 2"))
    bed.claim()
    async with bed.serving():
        await bed.wait_file("running")
        processes = [bed.lease.process.pid, *bed.children()]
        shown = b"".join(Path(f"/proc/{pid}/{name}").read_bytes() for pid in processes for name in ("environ", "cmdline"))
    assert works.requests[0].headers["x-api-key"] == KEY
    assert KEY.encode() not in shown
    places = [path for path in (tmp_path, bed.home.run) for path in path.rglob("*") if path.is_file()]
    holding = [path for path in places if KEY.encode() in path.read_bytes()]
    assert holding == [bed.home.credentials / "ada.self-key"], "where the operator put it"
    assert bed.home.ledger in places
    assert KEY not in capsys.readouterr().err + bed.lease.journal()
