"""Door: a person at a Matrix client of their own, for scenes. Plain blocking httpx and none of our code: an independent witness."""

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import httpx

SAID_KEY = "io.mind-body.said"
Event = dict[str, Any]


class Person:
    """One account. Every wait has a deadline and says what it was waiting for."""

    def __init__(self, base_url: str, user_id: str, token: str) -> None:
        self.user_id = user_id
        self.http = httpx.Client(base_url=base_url, headers={"Authorization": f"Bearer {token}"}, timeout=60, trust_env=False)
        self._txn = itertools.count()
        self._lead = f"p{time.time_ns()}"
        self._since: str | None = None

    def close(self) -> None:
        self.http.close()

    def call(self, method: str, path: str, **kwargs: Any) -> Any:
        answer = self.http.request(method, f"/_matrix/client/v3{path}", **kwargs)
        assert answer.status_code == 200, f"{method} {path}: {answer.status_code} {answer.text[:300]}"
        return answer.json()

    def create_room(self, *, invite: tuple[str, ...] = (), direct: bool = False, public: bool = False, **extra: Any) -> str:
        body = {
            "invite": list(invite),
            "is_direct": direct,
            "preset": "public_chat" if public else "trusted_private_chat" if direct else "private_chat",
        }
        return str(self.call("POST", "/createRoom", json={**body, **extra})["room_id"])

    def invite(self, room: str, user_id: str) -> None:
        self.call("POST", f"/rooms/{quote(room)}/invite", json={"user_id": user_id})

    def join(self, room: str) -> None:
        self.call("POST", f"/join/{quote(room)}", json={})

    def leave(self, room: str) -> None:
        self.call("POST", f"/rooms/{quote(room)}/leave", json={})

    def send(self, room: str, content: Event | str, kind: str = "m.room.message") -> str:
        body = {"msgtype": "m.text", "body": content} if isinstance(content, str) else content
        path = f"/rooms/{quote(room)}/send/{kind}/{self._lead}-{next(self._txn)}"
        return str(self.call("PUT", path, json=body)["event_id"])

    def say_to(self, room: str, user_id: str, text: str) -> str:
        """A message that mentions somebody, as Element writes it."""
        return self.send(room, {"msgtype": "m.text", "body": text, "m.mentions": {"user_ids": [user_id]}})

    def say_in_thread(self, room: str, root: str, text: str, **extra: Any) -> str:
        relation = {"rel_type": "m.thread", "event_id": root, "is_falling_back": True, "m.in_reply_to": {"event_id": root}}
        return self.send(room, {"msgtype": "m.text", "body": text, "m.relates_to": relation, **extra})

    def set_state(self, room: str, kind: str, content: Event, key: str = "") -> str:
        return str(self.call("PUT", f"/rooms/{quote(room)}/state/{kind}/{quote(key)}", json=content)["event_id"])

    def redact(self, room: str, event_id: str) -> None:
        path = f"/rooms/{quote(room)}/redact/{quote(event_id)}/{self._lead}-{next(self._txn)}"
        self.call("PUT", path, json={})

    def history(self, room: str) -> list[Event]:
        """Every event of the room that this account may see, oldest first."""
        events: list[Event] = []
        token: str | None = None
        while True:
            params = {"dir": "b", "limit": "500", **({"from": token} if token else {})}
            page = self.call("GET", f"/rooms/{quote(room)}/messages", params=params)
            events += page["chunk"]
            token = page.get("end")
            if not token or not page["chunk"]:
                return events[::-1]

    def messages(self, room: str, sender: str | None = None) -> list[Event]:
        """The m.room.message events, oldest first, of one sender or all."""
        found = [event for event in self.history(room) if event["type"] == "m.room.message" and "body" in event["content"]]
        return [event for event in found if sender in {None, event["sender"]}]

    def texts(self, room: str, sender: str) -> list[str]:
        """What somebody said (not noticed) in a room, oldest first."""
        return [event["content"]["body"] for event in self.messages(room, sender) if event["content"]["msgtype"] != "m.notice"]

    def sync(self, timeout_s: float = 0.0) -> Any:
        params = {"timeout": str(int(timeout_s * 1000)), **({"since": self._since} if self._since else {})}
        answer = self.call("GET", "/sync", params=params)
        self._since = answer["next_batch"]
        return answer

    def watch(self, deadline_s: float) -> Iterator[tuple[str, Event]]:
        """(room, event) of everything that arrives, typing and receipts included, until the deadline."""
        end = time.monotonic() + deadline_s
        while (left := end - time.monotonic()) > 0:
            for room, joined in self.sync(min(left, 5.0)).get("rooms", {}).get("join", {}).items():
                for event in joined.get("timeline", {}).get("events", []) + joined.get("ephemeral", {}).get("events", []):
                    yield room, event

    def wait_for(self, what: str, check: Callable[[], Any], deadline_s: float = 60.0) -> Any:
        """The first truthy answer of `check`, looked at whenever something arrives for this account, or an AssertionError."""
        end = time.monotonic() + deadline_s
        while True:
            if found := check():
                return found
            left = end - time.monotonic()
            assert left > 0, f"waited {deadline_s} s in vain for {what}"
            self.sync(min(left, 0.5))

    def wait_text(self, room: str, sender: str, count: int = 1, deadline_s: float = 60.0) -> list[str]:
        """What `sender` has said in the room once it is at least `count` texts."""
        return list(
            self.wait_for(
                f"{count} messages of {sender}",
                lambda: texts if len(texts := self.texts(room, sender)) >= count else None,
                deadline_s,
            )
        )
