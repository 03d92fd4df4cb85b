"""Door: the homeserver, over HTTP. The one home of httpx on this side; one client serves every Mind of the host.

1. `MatrixClient` owns the connections, without a limit that could bind; an `Account` is one Mind's way through it: homeserver and
   token. No cookie is kept: it would be shared between Minds. The Minds are spread over pools, since httpcore (1.0) looks at every
   connection of a pool at every request, and at all of them again for each idle one: with 300 in one, half of the mouth's time.
2. Every call has a deadline of our own, also a long poll: a connection that has silently died must not hold up an ear.
3. Every foreign error is translated here, once; what an answer means is read in `answers.py`.
4. Tokens and passwords are in headers and bodies, never in a URL, a log, a repr or an error.
5. It never waits and tries again: who calls knows what may wait.
"""

import functools
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.cookiejar import CookieJar, DefaultCookiePolicy
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx  # noqa: TID251 - its home
import trio

from mind_body.errors import MatrixError, MatrixRefused, MatrixUnreachable
from mind_body.matrix.answers import one_line, read_answer
from mind_body.matrix.filters import PAGE_FILTER, PAGE_LIMIT, SYNC_FILTER
from mind_body.matrix.wire import MessagesPage, Sync, parse_messages, parse_sync

DEADLINE_S = 60.0
"""For everything but a long poll: a busy Synapse takes many seconds for a large /sync or a join."""
CONNECT_S = 10.0
GREETING_MAX = 16
"""Sign-ins at a time; a password costs a homeserver a quarter of a second of its processor."""
LONG_POLL_SLACK_S = 30.0
"""What a homeserver may need beyond the wait that it was asked for."""
POOLS = 64
_DIRECT = dict.fromkeys(("all://127.0.0.1", "all://localhost", "all://[::1]"))
"""Never through a proxy of the environment: a homeserver on this host is reached here."""


@dataclass(frozen=True, slots=True)
class Login:
    """What a login or a registration gave."""

    user_id: str
    device_id: str
    token: str = field(repr=False)


_tls = functools.cache(httpx.create_ssl_context)
"""One for a process: loading the system's certificates costs 40 ms and a megabyte."""


class MatrixClient:
    """The connections of this process to every homeserver."""

    def __init__(self, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._transport = transport
        self._pools: dict[int, httpx.AsyncClient] = {}
        self.greeting = trio.CapacityLimiter(GREETING_MAX)
        """Held by who signs in."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        with trio.CancelScope(shield=True):
            for pool in self._pools.values():
                await pool.aclose()

    def account(self, homeserver: str, token: str) -> "Account":
        return Account(self, homeserver.rstrip("/"), token)

    async def login_password(self, homeserver: str, user: str, password: str, device_id: str) -> Login:
        """A token for this device. A wrong password is MatrixRefused with code M_FORBIDDEN."""
        body = {
            "type": "m.login.password",
            "identifier": {"type": "m.id.user", "user": user},
            "password": password,
            "device_id": device_id,
            "initial_device_display_name": "mind-body",
        }
        answer = await self.call(homeserver, "POST", "/_matrix/client/v3/login", None, "login", body=body)
        return _parse_login(answer)

    async def register(self, homeserver: str, registration: Mapping[str, Any]) -> Login:
        """Synapse's shared-secret registration. `registration` is username, password, admin, nonce and mac."""
        return _parse_login(await self.call(homeserver, "POST", REGISTER, None, "registration", body=dict(registration)))

    async def registration_nonce(self, homeserver: str) -> str:
        return _text(await self.call(homeserver, "GET", REGISTER, None, "registration"), "nonce")

    async def versions(self, homeserver: str) -> tuple[str, ...]:
        """The versions of the specification that it speaks: the cheapest question that proves a homeserver is there."""
        answer = await self.call(homeserver, "GET", "/_matrix/client/versions", None, "versions")
        found = answer.get("versions")
        return tuple(str(version) for version in found) if isinstance(found, list) else ()

    async def call(
        self,
        homeserver: str,
        method: str,
        path: str,
        token: str | None,
        what: str,
        *,
        body: Mapping[str, Any] | None = None,
        params: Mapping[str, str] | None = None,
        deadline_s: float = DEADLINE_S,
    ) -> dict[str, Any]:
        """One request, answered with a JSON object, or a MatrixError. `what` names it in sentences."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            with trio.fail_after(deadline_s):
                answer = await self._pool_of(token).request(
                    method, homeserver.rstrip("/") + path, headers=headers, json=body, params=params
                )
        except trio.TooSlowError as error:
            raise MatrixUnreachable(f"{homeserver} did not answer to {what} within {deadline_s:g} s") from error
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError) as error:
            raise translate_error(error, homeserver, what) from error
        return read_answer(answer.status_code, answer.headers, answer.content, homeserver, what)

    def _pool_of(self, token: str | None) -> httpx.AsyncClient:
        number = hash(token) % POOLS
        if number not in self._pools:
            self._pools[number] = httpx.AsyncClient(
                transport=self._transport,
                verify=_tls(),
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=None),
                timeout=httpx.Timeout(None, connect=CONNECT_S),
                cookies=CookieJar(policy=DefaultCookiePolicy(allowed_domains=[])),
                mounts=None if self._transport else _DIRECT,
                headers={"User-Agent": "mind-body"},
            )
        return self._pools[number]


@dataclass(frozen=True, slots=True)
class Account:
    """One Mind at one homeserver."""

    client: MatrixClient = field(repr=False)
    homeserver: str
    token: str = field(repr=False)

    async def whoami(self) -> tuple[str, str]:
        """(user id, device id) of the token; the device id is empty for a token without one."""
        answer = await self._call("GET", "/account/whoami", "whoami")
        return _text(answer, "user_id"), str(answer.get("device_id") or "")

    async def sync(self, since: str | None, timeout_s: float) -> Sync:
        """What is new since a position; None is the first sync of all."""
        if since is None:
            # It is answered at once whatever the wait, and Synapse keeps the answer for two minutes under the request's own words:
            # a wait that nobody asked for before gets a fresh one.
            timeout_s = secrets.randbelow(30_000) / 1000
        params = {"filter": _json(SYNC_FILTER), "timeout": str(int(timeout_s * 1000)), "set_presence": "offline"}
        if since is not None:
            params["since"] = since
        answer = await self._call("GET", "/sync", "sync", params=params, deadline_s=timeout_s + LONG_POLL_SLACK_S)
        return parse_sync(answer)

    async def messages_before(
        self, room_id: str, start: str | None, *, until: str | None = None, limit: int = PAGE_LIMIT
    ) -> MessagesPage:
        """A page of history, newest first: from `start` (None: now) back to `until` (a token; None: as far as she may see)."""
        params = {"dir": "b", "limit": str(limit), "filter": _json(PAGE_FILTER)}
        params |= {key: value for key, value in (("from", start), ("to", until)) if value}
        return parse_messages(await self._call("GET", f"/rooms/{_quoted(room_id)}/messages", "messages", params=params))

    async def send(self, room_id: str, event_type: str, txn_id: str, content: Mapping[str, Any]) -> str:
        """The event's id. The same transaction id from the same device is answered with the same event (for 24 h)."""
        path = f"/rooms/{_quoted(room_id)}/send/{_quoted(event_type)}/{_quoted(txn_id)}"
        return _text(await self._call("PUT", path, "send", body=content), "event_id")

    async def join(self, room_id: str, *, via: str = "") -> str:
        """The room's id. Joining where she is already is nothing. `via`: a server that is in the room, where hers may not be."""
        # `server_name` is what `via` was called before v1.12 of the specification.
        params = {"via": via, "server_name": via} if via else None
        return _text(await self._call("POST", f"/join/{_quoted(room_id)}", "join", body={}, params=params), "room_id")

    async def leave(self, room_id: str) -> None:
        """Leave, or decline an invite."""
        await self._call("POST", f"/rooms/{_quoted(room_id)}/leave", "leave", body={})

    async def create_room(self, content: Mapping[str, Any]) -> str:
        return _text(await self._call("POST", "/createRoom", "createRoom", body=content), "room_id")

    async def resolve_alias(self, alias: str) -> str | None:
        """The room's id; None where no room is called so."""
        try:
            return _text(await self._call("GET", f"/directory/room/{_quoted(alias)}", "alias"), "room_id")
        except MatrixRefused as error:
            if error.code == "M_NOT_FOUND":
                return None
            raise

    async def joined_rooms(self) -> frozenset[str]:
        """The ids of the rooms that she is in now, whatever /sync has said so far."""
        found = (await self._call("GET", "/joined_rooms", "joined rooms")).get("joined_rooms")
        return frozenset(map(str, found)) if isinstance(found, list) else frozenset()

    async def invite_direct(self, room_id: str, user_id: str) -> None:
        """Invite somebody to a DM. As state, since /invite cannot say what the room is for."""
        path = f"/rooms/{_quoted(room_id)}/state/m.room.member/{_quoted(user_id)}"
        await self._call("PUT", path, "invite", body={"membership": "invite", "is_direct": True})

    async def typing(self, room_id: str, user_id: str, timeout_s: float | None) -> None:
        """She is typing for so long, or not any more (None)."""
        body = {"typing": True, "timeout": int(timeout_s * 1000)} if timeout_s else {"typing": False}
        await self._call("PUT", f"/rooms/{_quoted(room_id)}/typing/{_quoted(user_id)}", "typing", body=body)

    async def read_receipt(self, room_id: str, event_id: str, thread: str | None = None) -> None:
        """Everything up to the event has been read."""
        path = f"/rooms/{_quoted(room_id)}/receipt/m.read/{_quoted(event_id)}"
        await self._call("POST", path, "receipt", body={"thread_id": thread} if thread else {})

    async def profile_name(self, user_id: str) -> str:
        """Her display name; empty for none."""
        try:
            answer = await self._call("GET", f"/profile/{_quoted(user_id)}", "profile")
        except MatrixRefused as error:
            if error.code == "M_NOT_FOUND":
                return ""
            raise
        return str(answer.get("displayname") or "")

    async def set_display_name(self, user_id: str, name: str) -> None:
        await self._call("PUT", f"/profile/{_quoted(user_id)}/displayname", "profile", body={"displayname": name})

    async def set_account_data(self, user_id: str, kind: str, content: Mapping[str, Any]) -> None:
        """`m.direct` and the like, whole."""
        await self._call("PUT", f"/user/{_quoted(user_id)}/account_data/{_quoted(kind)}", "account data", body=content)

    async def mark_direct(self, user_id: str, with_user: str, room_id: str) -> None:
        """Add a room to the account's own list of DMs, as every client does: it outlives the mind."""
        path = f"/user/{_quoted(user_id)}/account_data/m.direct"
        try:
            known = await self._call("GET", path, "m.direct")
        except MatrixRefused as error:
            if error.code != "M_NOT_FOUND":
                raise
            known = {}
        rooms = known.get(with_user)
        rooms = rooms if isinstance(rooms, list) else []
        if room_id not in rooms:
            await self._call("PUT", path, "m.direct", body={**known, with_user: [*rooms, room_id]})

    async def logout(self) -> None:
        await self._call("POST", "/logout", "logout", body={})

    async def _call(
        self,
        method: str,
        path: str,
        what: str,
        *,
        body: Mapping[str, Any] | None = None,
        params: Mapping[str, str] | None = None,
        deadline_s: float = DEADLINE_S,
    ) -> dict[str, Any]:
        full = f"/_matrix/client/v3{path}"
        return await self.client.call(
            self.homeserver, method, full, self.token, what, body=body, params=params, deadline_s=deadline_s
        )


REGISTER = "/_synapse/admin/v1/register"


def translate_error(error: Exception, homeserver: str, what: str) -> MatrixError:
    """Total over what httpx raises: a URL or a header that is none is our fault, everything else may be better the next time."""
    kind = type(error).__name__
    if isinstance(error, (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError)):
        return MatrixRefused(f"{homeserver} could not be asked for {what} ({kind}): see `homeserver` and the token", "BAD_REQUEST")
    return MatrixUnreachable(f"{homeserver} could not be reached for {what} ({kind}: {one_line(str(error)) or 'no reason given'})")


def _parse_login(answer: Mapping[str, Any]) -> Login:
    return Login(_text(answer, "user_id"), _text(answer, "device_id"), _text(answer, "access_token"))


def _text(answer: Mapping[str, Any], key: str) -> str:
    found = answer.get(key)
    if not isinstance(found, str) or not found:
        raise MatrixUnreachable(f"the homeserver's answer has no {key}")
    return found


def _quoted(part: str) -> str:
    return quote(part, safe="")


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
