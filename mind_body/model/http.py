"""Door: HTTP to a model's server. One request, one answer, nothing sent twice.

1. Nothing here retries: a model call that was sent may be on somebody's bill, whatever came back.
2. A failure says whether the request provably never left (`Unsent`) or may have been served (`Lost`).
3. Proxies of the environment are not used: what a model reads goes where the configuration says and nowhere else.
"""

import functools
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

import httpx  # noqa: TID251 - its home
import trio

Client: TypeAlias = httpx.AsyncClient
CONNECT_TIMEOUT_S = 10.0
_tls = functools.cache(httpx.create_ssl_context)
"""One for a process: loading the certificates costs 40 ms."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A whole HTTP answer. Header names are in small letters."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Unsent:
    """No connection, so no request: it cost nothing."""

    reason: str


@dataclass(frozen=True, slots=True)
class Lost:
    """The request left and no whole answer came: it may have been served, and paid for."""

    reason: str


class Streaming:
    """An answer that has begun. Header names are in small letters; the body comes as the server sends it."""

    def __init__(self, response: httpx.Response) -> None:
        self.status = response.status_code
        self.headers = {name.lower(): value for name, value in response.headers.items()}
        self._url = response.request.url
        self._chunks = response.aiter_raw()

    async def next_chunk(self) -> bytes | Lost | None:
        """The next bytes, None at the whole answer's end, Lost where it broke off."""
        try:
            return await anext(self._chunks, None)
        except httpx.HTTPError as error:
            return Lost(f"the answer of {self._url.host} broke off: {_word(error)}")


def open_client(timeout_s: float) -> Client:
    """A client that gives a call up after `timeout_s` without a byte. The caller closes it."""
    return httpx.AsyncClient(
        timeout=httpx.Timeout(timeout_s, connect=min(CONNECT_TIMEOUT_S, timeout_s)),
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=8),
        verify=_tls(trust_env=False),
        trust_env=False,
        follow_redirects=False,
    )


async def post_json(client: Client, url: str, content: bytes, headers: Mapping[str, str]) -> Answered | Unsent | Lost:
    """One POST. Reasons never carry what was sent."""
    try:
        response = await client.post(url, content=content, headers={"Content-Type": "application/json", **headers})
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
        return Unsent(f"no connection to {url}: {_word(error)}")
    except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
        return Unsent(f"{url} is not an address: {_word(error)}")
    except httpx.LocalProtocolError:
        return Unsent(f"the request to {url} could not be put into HTTP")  # its words may quote a header
    except httpx.TimeoutException as error:
        return Lost(f"{url} sent nothing for too long: {_word(error)}")
    except httpx.HTTPError as error:
        return Lost(f"the connection to {url} was lost: {_word(error)}")
    return Answered(response.status_code, {name.lower(): value for name, value in response.headers.items()}, response.content)


@asynccontextmanager
async def open_stream(
    client: Client, url: str, content: bytes, headers: Mapping[str, str]
) -> AsyncIterator[Streaming | Unsent | Lost]:
    """One POST whose answer is read as it comes. Reasons never carry what was sent."""
    response: httpx.Response | None = None
    try:
        response = await client.send(client.build_request("POST", url, content=content, headers=headers), stream=True)
        answer: Streaming | Unsent | Lost = Streaming(response)
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
        answer = Unsent(f"no connection to {httpx.URL(url).host}: {_word(error)}")
    except httpx.HTTPError as error:
        answer = Lost(f"{httpx.URL(url).host} did not answer: {_word(error)}")
    try:
        yield answer
    finally:
        if response is not None:
            with trio.CancelScope(shield=True):
                await response.aclose()


def _word(error: Exception) -> str:
    return str(error) or type(error).__name__
