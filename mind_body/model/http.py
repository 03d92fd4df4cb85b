"""Door: HTTP to a model's server. One request, one answer, nothing sent twice.

1. Nothing here retries: a model call that was sent may be on somebody's bill, whatever came back.
2. A failure says whether the request provably never left (`Unsent`) or may have been served (`Lost`).
3. Proxies of the environment are not used: what a model reads goes where the configuration says and nowhere else.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import httpx  # noqa: TID251 - its home

Client: TypeAlias = httpx.AsyncClient
CONNECT_TIMEOUT_S = 10.0


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


def open_client(timeout_s: float) -> Client:
    """A client that gives a call up after `timeout_s` without a byte. The caller closes it."""
    return httpx.AsyncClient(
        timeout=httpx.Timeout(timeout_s, connect=min(CONNECT_TIMEOUT_S, timeout_s)),
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=8),
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


def _word(error: Exception) -> str:
    return str(error) or type(error).__name__
