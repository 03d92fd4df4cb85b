import contextlib
import json
from collections.abc import Iterator

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind_body.errors import MatrixError, MatrixLimited, MatrixRefused, MatrixUnauthorised, MatrixUnreachable
from mind_body.matrix.answers import read_answer
from mind_body.matrix.client import MatrixClient, translate_error

SERVER = "https://matrix.example.org"


def every(kind: type[BaseException]) -> Iterator[type[BaseException]]:
    yield kind
    for below in kind.__subclasses__():
        yield from every(below)


def httpx_errors() -> list[type[Exception]]:
    public = [value for value in vars(httpx).values() if isinstance(value, type) and issubclass(value, Exception)]
    return sorted(set(public) - {httpx.CookieConflict}, key=lambda kind: kind.__name__)  # cookies are not kept


def made(kind: type[Exception]) -> Exception:
    request = httpx.Request("GET", SERVER)
    if issubclass(kind, httpx.HTTPStatusError):
        return kind("no", request=request, response=httpx.Response(500))
    return (
        kind("no")
        if kind not in {httpx.StreamConsumed, httpx.StreamClosed, httpx.ResponseNotRead, httpx.RequestNotRead}
        else kind()
    )


@pytest.mark.parametrize("kind", httpx_errors(), ids=lambda kind: kind.__name__)
async def test_no_error_of_httpx_crosses_the_door(kind: type[Exception]) -> None:
    def fail(request: httpx.Request) -> httpx.Response:
        raise made(kind)

    async with MatrixClient(transport=httpx.MockTransport(fail)) as client:
        with pytest.raises(MatrixError) as caught:
            await client.account(SERVER, "t0ken").whoami()
    assert SERVER in str(caught.value)
    assert "t0ken" not in str(caught.value)


def test_what_may_be_better_the_next_time_is_unreachable_and_a_wrong_address_is_refused() -> None:
    assert isinstance(translate_error(httpx.ReadError("x"), SERVER, "sync"), MatrixUnreachable)
    assert isinstance(translate_error(httpx.UnsupportedProtocol("x"), SERVER, "sync"), MatrixRefused)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, {"errcode": "M_UNKNOWN_TOKEN"}, MatrixUnauthorised),
        (403, {"errcode": "M_FORBIDDEN", "error": "no"}, MatrixRefused),
        (404, {"errcode": "M_NOT_FOUND"}, MatrixRefused),
        (404, "<html>nginx</html>", MatrixUnreachable),
        (413, "<html>nginx</html>", MatrixRefused),
        (429, {"errcode": "M_LIMIT_EXCEEDED", "retry_after_ms": 1234}, MatrixLimited),
        (500, {"errcode": "M_UNKNOWN"}, MatrixUnreachable),
        (502, "<html>", MatrixUnreachable),
        (302, "", MatrixUnreachable),
        (200, "<html>", MatrixUnreachable),
        (200, [1], MatrixUnreachable),
    ],
)
def test_each_status_means_what_can_be_done_about_it(status: int, body: object, kind: type[MatrixError]) -> None:
    content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    with pytest.raises(MatrixError) as caught:
        read_answer(status, {}, content, SERVER, "send")
    assert type(caught.value) is kind


def test_a_429_says_how_long_in_its_body_or_its_header_or_five_seconds() -> None:
    def waits(body: bytes, headers: dict[str, str]) -> int:
        with pytest.raises(MatrixLimited) as caught:
            read_answer(429, headers, body, SERVER, "send")
        return caught.value.retry_after_ms

    assert waits(b'{"retry_after_ms": 1234}', {"Retry-After": "9"}) == 1234
    assert waits(b"", {"Retry-After": "9"}) == 9000
    assert waits(b"", {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}) == 5000
    assert waits(b'{"retry_after_ms": true}', {}) == 5000
    assert waits(b'{"retry_after_ms": 900000000000}', {}) == waits(b"", {"Retry-After": "86400"}) == 3_600_000, (
        "an hour is the most"
    )


@given(
    st.integers(100, 599),
    st.binary(max_size=64) | st.recursive(st.none() | st.text(), st.lists).map(lambda v: json.dumps(v).encode()),
)
def test_an_answer_is_an_object_or_a_matrix_error_whatever_comes(status: int, content: bytes) -> None:
    with contextlib.suppress(MatrixError):
        assert isinstance(read_answer(status, {}, content, SERVER, "send"), dict)


async def test_no_cookie_of_one_mind_is_sent_for_another() -> None:
    seen: list[str | None] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers.get("Cookie"))
        return httpx.Response(200, json={"user_id": "@a:x", "device_id": "D"}, headers={"Set-Cookie": "who=a"})

    async with MatrixClient(transport=httpx.MockTransport(answer)) as client:
        await client.account(SERVER, "one").whoami()
        await client.account(SERVER, "two").whoami()
    assert seen == [None, None]


async def test_a_token_is_in_the_header_alone_and_in_no_repr() -> None:
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(200, json={"event_id": "$e"})

    async with MatrixClient(transport=httpx.MockTransport(answer)) as client:
        account = client.account(SERVER, "t0ken")
        await account.send("!room/../x:example.org", "m.room.message", "txn", {"body": "x"})
    assert requests[0].headers["Authorization"] == "Bearer t0ken"
    assert "t0ken" not in str(requests[0].url)
    assert "t0ken" not in repr(account)
    assert requests[0].url.raw_path.endswith(b"/rooms/%21room%2F..%2Fx%3Aexample.org/send/m.room.message/txn")


async def test_no_alias_is_no_error_and_a_refusal_to_tell_is_one() -> None:
    answers = [
        httpx.Response(404, json={"errcode": "M_NOT_FOUND"}),
        httpx.Response(403, json={"errcode": "M_FORBIDDEN"}),
        httpx.Response(200, json={"joined_rooms": ["!a:x", "!b:x"]}),
        httpx.Response(200, json={"joined_rooms": "none of your business"}),
    ]
    async with MatrixClient(transport=httpx.MockTransport(lambda _: answers.pop(0))) as client:
        account = client.account(SERVER, "t0ken")
        assert await account.resolve_alias("#a:x") is None
        with pytest.raises(MatrixRefused):
            await account.resolve_alias("#a:x")
        assert await account.joined_rooms() == {"!a:x", "!b:x"}
        assert await account.joined_rooms() == frozenset()
