"""Door: any server that speaks OpenAI's chat completions with `response_format: json_schema` (llama.cpp, Ollama, vLLM, OpenAI, …).

1. The server keeps nothing: a session is its plan and its exchanges, and each request sends them again, byte for byte.
2. One HTTP request per turn, never a second one by itself: it may have been paid for.
3. Reserved before, settled after. Settled at nothing where the request provably did not leave or was turned down; not settled
   where its answer was lost, and then it counts whole, here too.
4. An exchange is kept only when an answer came. A turn that failed or was cancelled leaves the session as it was.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

import trio

from mind_body.clock import now_ms
from mind_body.errors import ChildError, ConfigError, CredentialError
from mind_body.log import Journal
from mind_body.model.blot import blot
from mind_body.model.chat import count_ceiling, parse_answer, render_request
from mind_body.model.http import Answered, Client, Lost, Unsent, open_client, post_json
from mind_body.model.prices import PriceBook, Priced, price
from mind_body.model.session import NETWORK_WAIT_MS, Exchange, Failed, Outcome, SessionPlan, TurnResult, Usage
from mind_body.model.spend import Borrow, Declined, Purse, Trouble, borrow_none
from mind_body.model.trouble import judge_declined
from mind_body.settings import ModelConfig

WINDOW_UNKNOWN = 128_000
"""Design §7."""
OUTPUT_CAP = 4_096
DEFAULT_MODEL = "default"
"""llama.cpp serves what it has loaded, whatever it is called."""
SETTLE_S = 5.0
"""A settlement is not cut short by a cancellation, nor may it hold one up for longer."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to send, and with which key."""

    base_url: str
    key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ChatModel:
    """One model behind one server: what all its sessions share."""

    instance: str
    model: str
    output_cap: int
    options: Mapping[str, Any]
    """Fields of every request, in order; `messages` follows them."""
    endpoint: Callable[[], Awaitable[Endpoint | Declined]]
    """Asked before every call. May raise CredentialError or ChildError."""
    client: Client
    prices: PriceBook
    purse: Purse
    journal: Journal | None = None
    clock: Callable[[], int] = now_ms

    def price(self, usage: Usage) -> Priced:
        return price(self.prices, self.model, usage, self.instance)


class ChatSession:
    """One conversation, kept as exchanges and sent whole each time."""

    def __init__(self, chat: ChatModel, plan: SessionPlan) -> None:
        self._chat = chat
        self._plan = plan
        self._past = list(plan.past)
        self._warned = False

    async def send(self, text: str, call_id: str) -> TurnResult:
        chat = self._chat
        try:
            endpoint = await chat.endpoint()
        except CredentialError as error:
            return self._nothing(Failed("authentication", None, str(error)))
        except ChildError as error:
            return self._nothing(Failed("fault", chat.clock() + NETWORK_WAIT_MS, str(error)))
        if isinstance(endpoint, Declined):
            return self._nothing(judge_declined(endpoint, chat.clock()))
        request = render_request(self._plan, self._past, text, chat.options)
        ceiling = chat.price(count_ceiling(request, chat.output_cap))
        if not ceiling.known and not self._warned and chat.journal:
            self._warned = True
            chat.journal.note("model.price-unknown", _unpriced(chat.model, ceiling), level="warning", MODEL=chat.model)
        verdict = await chat.purse.reserve(call_id, ceiling.micro_usd, chat.model)
        if isinstance(verdict, Declined):
            return self._nothing(judge_declined(verdict, chat.clock()))
        headers = {"Authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}
        answer = await post_json(chat.client, f"{endpoint.base_url}/chat/completions", request, headers)
        if isinstance(answer, Answered):
            answer = replace(answer, body=blot(answer.body, endpoint.key))  # it becomes a reason, and is told
        return await self._settle(answer, text, call_id, request, ceiling)

    async def aclose(self) -> None:
        """There is no process behind a session of this kind."""
        await trio.lowlevel.checkpoint()

    async def _settle(
        self, answer: Answered | Unsent | Lost, text: str, call_id: str, request: bytes, ceiling: Priced
    ) -> TurnResult:
        chat = self._chat
        if isinstance(answer, Unsent):
            await self._pay(call_id, Usage(), 0, "")
            return self._nothing(Failed("network", chat.clock() + NETWORK_WAIT_MS, answer.reason))
        if isinstance(answer, Lost):
            failed = Failed("network", chat.clock() + NETWORK_WAIT_MS, answer.reason)
            return self._nothing(failed, api_calls=1, cost=ceiling.micro_usd)
        parsed = parse_answer(answer.status, answer.headers, answer.body, chat.clock())
        # An answer without figures is counted as its whole ceiling.
        usage = parsed.usage if parsed.usage is not None else count_ceiling(request, chat.output_cap)
        cost = chat.price(usage).micro_usd
        if parsed.text is not None:
            self._past.append(Exchange(text, parsed.text))
        model = parsed.model or chat.model
        await self._pay(call_id, usage, cost, model, parsed.trouble)
        return TurnResult(
            parsed.outcome,
            usage,
            usage,
            cost,
            self._cursor,
            api_calls=1,
            received=parsed.received,
            model=model,
        )

    async def _pay(self, call_id: str, usage: Usage, cost: int, model: str, trouble: Trouble | None = None) -> None:
        with trio.move_on_after(SETTLE_S) as scope:
            scope.shield = True
            await self._chat.purse.settle(call_id, usage, cost, model, trouble)

    def _nothing(self, outcome: Outcome, *, api_calls: int = 0, cost: int = 0) -> TurnResult:
        return TurnResult(outcome, Usage(), Usage(), cost, self._cursor, api_calls, model=self._chat.model)

    @property
    def _cursor(self) -> str | None:
        """How many exchanges the session has: what it comes back to is in the record alone."""
        return str(len(self._past)) if self._past else None


class OpenAIProvider:
    """A `Provider` over one server."""

    keeps_transcript = False
    small = False

    def __init__(
        self,
        config: ModelConfig,
        *,
        prices: PriceBook,
        purse: Purse,
        credential: Borrow = borrow_none,
        journal: Journal | None = None,
    ) -> None:
        """Raises ConfigError where the server's address cannot be used. `credential` is asked before every call."""
        self._base_url = _check_url(config.base_url)
        self._config = config
        self._credential = credential
        self._client: Client | None = None
        self._prices, self._purse, self._journal = prices, purse, journal

    @property
    def instance(self) -> str:
        return f"openai:{self._base_url}"

    @property
    def model(self) -> str:
        return self._config.model or DEFAULT_MODEL

    @property
    def window_tokens(self) -> int:
        return self._config.window_tokens or WINDOW_UNKNOWN

    @property
    def output_cap(self) -> int:
        return self._config.max_output_tokens or OUTPUT_CAP

    async def open(self, plan: SessionPlan) -> ChatSession:
        await trio.lowlevel.checkpoint()
        self._client = self._client or open_client(self._config.timeout_s)
        options = {"model": self.model, "max_tokens": self.output_cap}
        chat = ChatModel(
            self.instance,
            self.model,
            self.output_cap,
            options,
            self._endpoint,
            self._client,
            self._prices,
            self._purse,
            self._journal,
        )
        return ChatSession(chat, plan)

    async def aclose(self) -> None:
        if self._client is not None:
            client, self._client = self._client, None
            await client.aclose()

    async def _endpoint(self) -> Endpoint | Declined:
        key = await self._credential()
        return key if isinstance(key, Declined) else Endpoint(self._base_url, check_key(key))


def check_key(key: str | None) -> str | None:
    """A key as it may stand in a header, or a CredentialError that does not quote it."""
    if key is not None and not (key.isascii() and key.isprintable() and " " not in key):
        raise CredentialError("the model's key holds characters that no key has; write it anew")
    return key


def _check_url(url: str) -> str:
    parts = urlsplit(url)
    if not url:
        raise ConfigError("[model] base_url is empty; the openai provider needs its server's address, up to and including /v1")
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ConfigError(f"[model] base_url = {url!r} is not an address like http://127.0.0.1:8080/v1")
    if parts.username or parts.password or parts.query:
        raise ConfigError("[model] base_url must hold no secret; put the key into credentials/NAME.model-key")
    return url.rstrip("/")


def _unpriced(model: str, ceiling: Priced) -> str:
    return f"{model} has no price in prices.toml; it is counted as {ceiling.counted_as}, the dearest known."
