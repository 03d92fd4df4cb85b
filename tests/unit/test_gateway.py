"""The gateway, spoken to over loopback by a plain HTTP client, before a scripted Messages API."""

import contextlib
import http.server
import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import structlog.testing
import trio
import trio.testing

from mind_body.clock import now_ms
from mind_body.log import Journal
from mind_body.model.gateway import Gateway
from mind_body.model.http import open_client
from mind_body.model.price_file import read_prices
from mind_body.model.relay import Relay, Upstream
from mind_body.model.seat import Grant, Seat
from mind_body.model.session import Failed, Usage
from mind_body.model.spend import Declined, Reserved, Trouble
from mind_body.model.trouble import judge_passed
from tests.fakes import RecordingPurse, lend, lend_nothing
from tests.real.parts.messages_api import (
    Answer,
    CutOff,
    Fault,
    HalfStream,
    Held,
    MessagesApi,
    Prose,
    Structured,
    refusal,
    scripted_messages_api,
)

REAL = "sk-real-0123456789"
USAGE = {"input_tokens": 10, "output_tokens": 5}


class Bed:
    """A gateway that runs, one seat, and the child's client."""

    def __init__(self, gateway: Gateway, child: httpx.AsyncClient) -> None:
        self.gateway = gateway
        self.child = child
        self.seat = gateway.open_seat()
        self.purse = RecordingPurse()

    def grant(self, call_id: str = "c1", *, whole_run: bool = False) -> Grant:
        self.seat.grant = Grant(call_id, self.purse, whole_run)
        return self.seat.grant

    async def ask(
        self, text: str = "hi", *, path: str = "/v1/messages?beta=true", stream: bool = True, headers: dict[str, str] | None = None
    ) -> httpx.Response:
        body = {"model": "claude-sonnet-4-5", "max_tokens": 10, "stream": stream, "messages": [{"role": "user", "content": text}]}
        return await self.child.post(self.gateway.url + path, json=body, headers=headers or {"x-api-key": self.seat.key})


@pytest.fixture
def api() -> Iterator[MessagesApi]:
    with scripted_messages_api(Structured({"say": []}, USAGE)) as scripted:
        yield scripted


@asynccontextmanager
async def opened(base_url: str, **changes: Any) -> AsyncIterator[Bed]:
    fields: dict[str, Any] = {"kind": "api-key", "borrow": lend(REAL)} | changes
    upstream = Upstream(base_url=base_url, prices=read_prices(), instance="claude:test", **fields)
    async with open_client(10) as client, httpx.AsyncClient(trust_env=False) as child, trio.open_nursery() as nursery:
        gateway = Gateway(Relay(upstream, client, Journal("persona", "ada")), Journal("persona", "ada"))
        await gateway.listen()
        nursery.start_soon(gateway.run)
        with trio.fail_after(20):
            yield Bed(gateway, child)
        nursery.cancel_scope.cancel()


async def test_the_childs_key_is_replaced_by_the_real_one_and_everything_else_is_left_alone(api: MessagesApi) -> None:
    async with opened(api.url) as bed:
        bed.grant()
        answer = await bed.ask(headers={"x-api-key": bed.seat.key, "anthropic-beta": "a,b", "x-odd": "kept"})
    (request,) = api.requests
    assert answer.status_code == 200
    assert request.path == "/v1/messages?beta=true"
    assert request.headers["x-api-key"] == REAL
    assert "authorization" not in request.headers
    assert (request.headers["anthropic-beta"], request.headers["x-odd"]) == ("a,b", "kept")
    assert bed.seat.key not in str(request.headers)
    assert REAL not in answer.text + str(answer.headers) + repr(bed.seat)
    assert bed.seat.key not in repr(bed.seat)


async def test_a_bearer_key_becomes_the_real_bearer(api: MessagesApi) -> None:
    async with opened(api.url, kind="oauth-token") as bed:
        bed.grant()
        await bed.ask(headers={"authorization": f"Bearer {bed.seat.key}"})
    assert api.requests[0].headers["authorization"] == f"Bearer {REAL}"
    assert "x-api-key" not in api.requests[0].headers


@pytest.mark.parametrize(
    "headers", [{"x-api-key": "guess"}, {"authorization": "Bearer"}, {"x-none": "1"}, {"authorization": "Basic é"}]
)
async def test_a_key_that_is_nobodys_opens_nothing(api: MessagesApi, headers: dict[str, str]) -> None:
    async with opened(api.url) as bed:
        bed.grant()
        answer = await bed.child.post(
            bed.gateway.url + "/v1/messages", json={}, headers=[(k.encode(), v.encode("latin-1")) for k, v in headers.items()]
        )
    assert answer.status_code == 401
    assert not api.requests


async def test_a_closed_seats_key_opens_nothing_any_more(api: MessagesApi) -> None:
    async with opened(api.url) as bed:
        bed.grant()
        bed.gateway.close_seat(bed.seat)
        assert (await bed.ask()).status_code == 401
    assert not api.requests


async def test_nothing_but_messages_and_their_counting_passes(api: MessagesApi) -> None:
    async with opened(api.url) as bed:
        bed.grant()
        for path in ("/v1/models", "/", "/v1/messages/batches", "/v1/messages/../files"):
            assert (await bed.ask(path=path)).status_code == 404
        assert (await bed.child.get(bed.gateway.url + "/v1/messages", headers={"x-api-key": bed.seat.key})).status_code == 404
        assert not api.others
        await bed.ask(path="/v1/messages/count_tokens")
    assert [one.path for one in api.others] == ["/v1/messages/count_tokens"]
    assert api.others[0].headers["x-api-key"] == REAL
    assert bed.purse.reserved == {}


async def test_nothing_leaves_without_a_grant_and_the_cli_is_told_not_to_try_again(api: MessagesApi) -> None:
    async with opened(api.url) as bed:
        answer = await bed.ask()
        assert answer.status_code == 403
        assert answer.headers["x-should-retry"] == "false"
        bed.grant()
        assert (await bed.ask()).status_code == 200
        bed.seat.close_grant()
        assert (await bed.ask()).status_code == 403
    assert len(api.requests) == 1


async def test_a_call_is_reserved_before_and_settled_after_by_what_was_metered(api: MessagesApi) -> None:
    api.script(Fault(500), Structured({"say": []}, USAGE))
    async with opened(api.url) as bed:
        grant = bed.grant()
        await bed.ask()
        await bed.ask()
        plain = bed.grant("c2")
        await bed.ask("hi", stream=False)
    usage = Usage(uncached=10, output=5)
    assert list(bed.purse.reserved) == ["c1", "c1.2", "c2"]
    assert bed.purse.settled == {"c1": (Usage(), 0), "c1.2": (usage, 105), "c2": (usage, 105)}
    (passed,) = plain.passed
    assert (passed.status, passed.metered.usage, passed.cost_micro_usd) == (200, usage, 105)
    assert grant.passed[1].metered == passed.metered
    assert passed.metered.model == "claude-sonnet-4-5"
    assert all(ceiling >= 105 for ceiling in bed.purse.reserved.values())


async def test_what_was_sent_in_vain_is_in_no_cache_and_is_reserved_whole_again(api: MessagesApi) -> None:
    cached = {"input_tokens": 1, "cache_creation_input_tokens": 9, "output_tokens": 5}
    warmed = Structured({"say": []}, cached)
    api.script(Structured({"say": []}, USAGE), warmed, warmed, Fault(529, "overloaded_error"), warmed)
    async with opened(api.url) as bed:
        bed.grant(whole_run=True)
        for _ in range(3):
            await bed.ask("a" * 30_000)
        whole, uncached, warm = bed.purse.reserved.values()
        assert whole == uncached > 10 * warm, "only what an answer told to be cached is reserved as read"
        await bed.ask("b" * 30_000)
        await bed.ask("b" * 30_000)
    assert list(bed.purse.reserved.values())[-1] == whole


@pytest.mark.parametrize("answer", [Structured({"say": []}), CutOff(), refusal()])
async def test_a_turn_that_had_its_answer_has_no_further_request(api: MessagesApi, answer: Answer) -> None:
    api.script(answer)
    async with opened(api.url) as bed:
        bed.grant()
        assert (await bed.ask()).status_code == 200
        assert (await bed.ask()).status_code == 403
        bed.grant("c2")
        assert (await bed.ask()).status_code == 200
    assert len(api.requests) == 2


async def test_prose_may_be_followed_by_the_clis_one_reminder(api: MessagesApi) -> None:
    api.script(Prose("I think"), Prose("not"))
    async with opened(api.url) as bed:
        bed.grant()
        assert [(await bed.ask()).status_code for _ in range(3)] == [200, 200, 403]


async def test_a_limit_is_not_tried_again_by_the_cli(api: MessagesApi) -> None:
    api.script(Fault(429, "rate_limit_error"))
    async with opened(api.url) as bed:
        bed.grant()
        assert (await bed.ask()).headers["x-should-retry"] == "false"


async def test_a_declined_call_is_not_sent(api: MessagesApi) -> None:
    async with opened(api.url) as bed:
        bed.purse.declined = Declined("held", "held by the operator")
        grant = bed.grant()
        answer = await bed.ask()
    assert answer.status_code == 403
    assert grant.passed[0].declined == Declined("held", "held by the operator")
    assert not api.requests


async def test_a_credential_that_cannot_be_borrowed_is_told_apart_and_nothing_is_sent(api: MessagesApi) -> None:
    nothing = Declined("authentication", "x.model-key does not exist")
    async with opened(api.url, borrow=lend_nothing(nothing)) as bed:
        grant = bed.grant()
        assert (await bed.ask()).status_code == 401
    assert grant.passed[0].declined == nothing
    assert not api.requests
    assert not bed.purse.reserved


async def test_the_servers_errors_pass_as_they_are_and_cost_nothing(api: MessagesApi) -> None:
    api.script(
        Fault(529, "overloaded_error"), Fault(429, "rate_limit_error", headers={"anthropic-ratelimit-unified-reset": "1800000000"})
    )
    async with opened(api.url) as bed:
        grant = bed.grant()
        assert (await bed.ask()).status_code == 529
        answer = await bed.ask()
    assert answer.status_code == 429
    assert answer.headers["anthropic-ratelimit-unified-reset"] == "1800000000"
    assert [one.status for one in grant.passed] == [529, 429]
    assert bed.purse.settled == {"c1": (Usage(), 0), "c1.2": (Usage(), 0)}


async def test_a_server_that_quotes_the_key_quotes_it_to_nobody(api: MessagesApi) -> None:
    api.script(Fault(401, "authentication_error", f"invalid key {REAL}!", headers={"www-authenticate": f"Bearer {REAL}"}))
    async with opened(api.url) as bed:
        bed.grant()
        answer = await bed.ask()
    assert api.requests[0].headers["x-api-key"] == REAL
    hidden = "*" * len(REAL)
    assert answer.json()["error"] == {"type": "authentication_error", "message": f"invalid key {hidden}!"}
    assert answer.headers["www-authenticate"] == f"Bearer {hidden}"


async def test_an_answer_that_breaks_off_is_seen_to_break_off_and_counts_whole(api: MessagesApi) -> None:
    api.script(HalfStream({"say": []}))
    async with opened(api.url) as bed:
        grant = bed.grant()
        with pytest.raises(httpx.RemoteProtocolError):
            await bed.ask()
        async with grant.passing:
            (passed,) = grant.passed
    assert passed.broken is not None
    assert passed.cost_micro_usd == bed.purse.reserved["c1"]
    assert bed.purse.settled == {}


async def test_a_wrong_address_that_answers_with_a_page_fills_no_cap() -> None:
    class Pages(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(b"<html>Welcome!</html>")

    server = http.server.HTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        async with opened(f"http://127.0.0.1:{server.server_address[1]}") as bed:
            grant = bed.grant(whole_run=True)
            await bed.ask()
    finally:
        server.shutdown()
        server.server_close()
    assert bed.purse.settled == {"c1": (Usage(), 0)}
    assert isinstance(judge_passed(grant.passed[0], now_ms()), Failed)


async def test_a_server_that_is_not_there_costs_nothing() -> None:
    async with opened("http://127.0.0.1:9") as bed:
        grant = bed.grant()
        assert (await bed.ask()).status_code == 502
    assert grant.passed[0].broken is not None
    assert not grant.passed[0].sent
    assert bed.purse.settled == {"c1": (Usage(), 0)}


async def test_an_answer_is_not_held_back(api: MessagesApi) -> None:
    """The first event arrives while the server has not yet sent the last."""
    gate = threading.Event()
    api.pause_stream = gate
    async with opened(api.url) as bed:
        bed.grant()
        body = {"model": "m", "stream": True, "messages": []}
        async with bed.child.stream(
            "POST", bed.gateway.url + "/v1/messages", json=body, headers={"x-api-key": bed.seat.key}
        ) as answer:
            chunks = answer.aiter_raw()
            assert b"message_start" in await anext(chunks)
            gate.set()
            rest = b"".join([chunk async for chunk in chunks])
    assert b"message_stop" in rest


async def test_a_turn_that_is_given_up_breaks_off_what_still_passes(api: MessagesApi) -> None:
    gate = threading.Event()
    api.script(Held(gate, Structured({"say": []})))
    async with opened(api.url) as bed:
        grant = bed.grant()
        async with trio.open_nursery() as nursery:

            async def ask() -> None:
                with pytest.raises(httpx.HTTPError):
                    await bed.ask()

            nursery.start_soon(ask)
            while not api.requests:
                await trio.sleep(0.005)
            bed.seat.close_grant()
        gate.set()
    assert grant.passed[0].broken == "the turn was given up"
    assert bed.purse.settled == {}


async def test_a_broken_prefix_is_a_line_in_the_journal_and_no_error(api: MessagesApi) -> None:
    async with opened(api.url) as bed:
        bed.grant()
        with structlog.testing.capture_logs() as lines:
            await bed.ask("one secret")
            bed.grant()
            await bed.ask("one secret")
            assert not [line for line in lines if line["kind"] == "prefix.broken"]
            bed.grant()
            assert (await bed.ask("two")).status_code == 200
    (broken,) = [line for line in lines if line["kind"] == "prefix.broken"]
    assert "block 0 of 1 (user) changed" in broken["REASON"]
    assert "secret" not in json.dumps(lines)
    assert REAL not in json.dumps(lines)


async def test_what_is_no_json_object_is_not_sent(api: MessagesApi) -> None:
    async with opened(api.url) as bed:
        bed.grant()
        for raw in (b"[]", b"{", b"\xff"):
            answer = await bed.child.post(bed.gateway.url + "/v1/messages", content=raw, headers={"x-api-key": bed.seat.key})
            assert answer.status_code == 400
    assert not api.requests


async def test_each_seat_has_a_key_of_its_own() -> None:
    assert Seat().key != Seat().key
    assert len(Seat().key) >= 43


async def test_nonsense_on_the_line_harms_nobody(api: MessagesApi) -> None:
    async with opened(api.url) as bed:
        bed.grant()
        port = int(bed.gateway.url.rpartition(":")[2])
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            await stream.send_all(b"\x00\x01 nonsense\r\n\r\n")
            assert await stream.receive_some() == b""
        assert (await bed.ask()).status_code == 200


async def test_a_runs_requests_pass_side_by_side_and_as_many_as_it_likes(api: MessagesApi) -> None:
    gate = threading.Event()
    api.script(Held(gate, Structured({"say": []}, USAGE)))
    async with opened(api.url) as bed:
        grant = bed.grant("run", whole_run=True)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bed.ask, "held")
            while not api.requests:
                await trio.sleep(0.005)
            assert [(await bed.ask(f"subagent {number}")).status_code for number in range(3)] == [200] * 3
            gate.set()
    assert sorted(one.call_id for one in grant.passed) == ["run", "run.2", "run.3", "run.4"]
    assert len(bed.purse.settled) == 4


async def test_a_runs_key_is_worth_nothing_after_the_run_and_what_passes_is_broken_off(api: MessagesApi) -> None:
    gate = threading.Event()
    api.script(Held(gate, Structured({"say": []})))
    async with opened(api.url) as bed:
        grant = bed.grant("run", whole_run=True)
        async with trio.open_nursery() as nursery:

            async def ask() -> None:
                with pytest.raises(httpx.HTTPError):
                    await bed.ask()

            nursery.start_soon(ask)
            while not api.requests:
                await trio.sleep(0.005)
            bed.seat.close_grant()
            await grant.idle.wait()
        assert [one.broken for one in grant.passed] == ["the turn was given up"]
        assert (await bed.ask()).status_code == 403
        gate.set()
    assert len(api.requests) == 1


async def test_each_thread_of_a_run_is_compared_with_itself_alone(api: MessagesApi) -> None:
    async def ask(*texts: str) -> None:
        roles = ("user", "assistant")
        messages = [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)]
        body = {"model": "m", "stream": False, "messages": messages}
        answer = await bed.child.post(bed.gateway.url + "/v1/messages", json=body, headers={"x-api-key": bed.seat.key})
        assert answer.status_code == 200

    async with opened(api.url) as bed:
        bed.grant("run", whole_run=True)
        with structlog.testing.capture_logs() as lines:
            await ask("main")
            await ask("a subagent's")
            await ask("main", "yes", "goes on")
            await ask("a subagent's", "yes", "goes on")
            assert not [line for line in lines if line["kind"] == "prefix.broken"]
            await ask("main", "no", "something else")
    assert [line["CALL"] for line in lines if line["kind"] == "prefix.broken"] == ["run.5"]


async def test_a_credential_that_is_refused_twice_is_not_tried_again(api: MessagesApi) -> None:
    api.script(Fault(401, "authentication_error"), Fault(401, "authentication_error"), Fault(402, "billing_error"), Fault(529))
    async with opened(api.url) as bed:
        bed.grant("run", whole_run=True)
        told = [(await bed.ask()).headers.get("x-should-retry") for _ in range(4)]
    assert told == [None, "false", "false", None]


async def test_an_answer_that_the_child_hung_up_on_is_still_what_it_was_and_costs_what_it_cost(api: MessagesApi) -> None:
    gate = threading.Event()
    api.script(Held(gate, Structured({"say": []}, USAGE)))
    async with opened(api.url) as bed:
        grant = bed.grant()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bed.ask)
            while not api.requests:
                await trio.sleep(0.01)
            nursery.cancel_scope.cancel()
        gate.set()
        while not bed.purse.settled:
            await trio.sleep(0.01)
        (passed,) = grant.passed
        assert (passed.broken, passed.metered.complete, passed.metered.stop_reason) == (None, True, "tool_use")
        assert bed.purse.settled == {"c1": (passed.metered.usage, passed.cost_micro_usd)}
        assert (await bed.ask()).status_code == 403, "the turn has had its answer"


# What the lease is told, and what it says.


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Fault(401, "authentication_error"), ("authentication", None)),
        (Fault(402, "billing_error"), ("payment", None)),
        (Fault(403, "permission_error"), None),
        (Fault(429, "rate_limit_error", headers={"retry-after": "30"}), ("limited", 30_000)),
        (Fault(429, "rate_limit_error"), ("limited", 60_000)),
        (Fault(500), None),
        (Fault(529, "overloaded_error"), ("overloaded", 5_000)),
        (Fault(529, "overloaded_error", headers={"retry-after": "7"}), ("overloaded", 7_000)),
        (Structured({"say": []}), None),
        (HalfStream({"say": []}), None),
    ],
    ids=["401", "402", "403", "429 with reset", "429", "500", "529", "529 with reset", "answered", "broken off"],
)
async def test_what_is_wrong_with_the_credential_goes_with_the_settlement(
    api: MessagesApi, answer: Answer, told: tuple[str, int | None] | None
) -> None:
    api.script(answer)
    began = now_ms()
    async with opened(api.url) as bed:
        grant = bed.grant()
        with contextlib.suppress(httpx.RemoteProtocolError):
            await bed.ask()
        async with grant.passing:
            pass
    if told is None:
        assert bed.purse.troubles == []
        return
    (found,) = bed.purse.troubles
    assert found.kind == told[0]
    assert found.until is None if told[1] is None else 0 <= (found.until or 0) - began - told[1] < 2_000


async def test_a_run_is_told_when_to_try_again_what_a_lease_that_is_away_could_not_grant(api: MessagesApi) -> None:
    async with opened(api.url) as bed:
        bed.grant("run", whole_run=True)
        bed.purse.declined = Declined("fault", "the lease does not answer", now_ms() + 4_500)
        answer = await bed.ask()
        assert (answer.status_code, answer.headers["x-should-retry"]) == (500, "true")
        assert answer.headers["retry-after"] in {"4", "5"}
        assert "lease" not in answer.text
        bed.purse.declined = Declined("spend", "her day is spent", now_ms() + 4_500)
        answer = await bed.ask()
        assert (answer.status_code, answer.headers["x-should-retry"]) == (403, "false")
        assert "retry-after" not in answer.headers
    assert not api.requests


async def test_no_tokens_are_counted_without_a_credential_either(api: MessagesApi) -> None:
    async with opened(api.url, borrow=lend_nothing(Declined("held", "enough"))) as bed:
        bed.grant()
        assert (await bed.ask(path="/v1/messages/count_tokens")).status_code == 403
    assert not api.others


class SlowPurse(RecordingPurse):
    """A lease that takes its time."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.go = trio.Event(), trio.Event()

    async def reserve(self, call_id: str, ceiling_micro_usd: int, model: str = "") -> Reserved | Declined:
        self.asked.set()
        await self.go.wait()
        return await super().reserve(call_id, ceiling_micro_usd, model)


async def test_a_request_that_waits_for_the_lease_when_its_grant_is_closed_never_leaves(api: MessagesApi) -> None:
    async with opened(api.url) as bed:
        slow = bed.purse = SlowPurse()
        grant = bed.grant("run", whole_run=True)
        async with trio.open_nursery() as nursery:

            async def ask() -> None:
                with pytest.raises(httpx.HTTPError):
                    await bed.ask()

            nursery.start_soon(ask)
            await slow.asked.wait()
            bed.seat.close_grant()
            await grant.idle.wait()
            slow.go.set()
    assert not api.requests
    assert slow.reserved == {}


class LateBooks(RecordingPurse):
    """A lease that writes down what it is told when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.told, self.go = trio.Event(), trio.Event()

    async def settle(
        self, call_id: str, usage: Usage, cost_micro_usd: int, model: str = "", trouble: Trouble | None = None
    ) -> None:
        self.told.set()
        await self.go.wait()
        await super().settle(call_id, usage, cost_micro_usd, model, trouble)


async def test_an_answer_that_was_told_whole_is_paid_for_though_its_grant_is_closed_meanwhile(api: MessagesApi) -> None:
    async with opened(api.url) as bed:
        late = bed.purse = LateBooks()
        grant = bed.grant("run", whole_run=True)
        assert (await bed.ask()).status_code == 200
        await late.told.wait()
        bed.seat.close_grant()
        await trio.testing.wait_all_tasks_blocked()
        assert not grant.idle.is_set(), "who waits for the whole account waits for this"
        late.go.set()
        await grant.idle.wait()
        bed.grant("next", whole_run=True)
        assert (await bed.ask()).status_code == 200, "on the same connection"
    assert [(one.call_id, one.broken) for one in grant.passed] == [("run", None)]
    assert late.settled["run"][0].output == USAGE["output_tokens"]
