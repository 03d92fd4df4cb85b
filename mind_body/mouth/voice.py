"""Loop: one Mind's voice. What is queued is sent, in order, once (design §3: T4a, PUT, T4b).

1. Each room is served by a task of its own, one row after the other; a room that waits holds up no other.
2. The brake is read before every row. While held nothing is sent, and nothing is lost: it stays queued.
3. T4a is committed before the PUT, T4b after it, and nothing awaits between the answer and T4b. Whatever dies in between, the next
   start makes the same PUT again, or first looks for our said id in the room's history where the homeserver may have forgotten.
4. Whatever the homeserver says becomes a wait that is kept in the mind, or a refusal with its reason; only a token that is worth
   nothing any more (MatrixUnauthorised) leaves this loop: the mouth has to log in.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, assert_never

import trio

from mind_body.clock import now_ms
from mind_body.control.effective import Held
from mind_body.control.files import read_control
from mind_body.crash import crash_point
from mind_body.errors import MatrixError, MatrixUnauthorised, MindBodyError
from mind_body.home import Home
from mind_body.log import Journal
from mind_body.matrix.events import Edit, Event, Message, Reaction
from mind_body.matrix.relations import relate_content
from mind_body.matrix.wire import MessagesPage
from mind_body.mind import outbox
from mind_body.mind.records import Identity, Said, SaidKind, SaidState
from mind_body.mind.store import Mind
from mind_body.mouth.nudge import Nudge
from mind_body.mouth.speak import GiveUp, Wait, may_follow, must_look_first, pick_due, plan_setback

HISTORY_SLACK_MS = 24 * 3_600_000
"""How far two clocks may disagree: what is older than the attempt by more than this cannot be its event."""

WORDS = {SaidKind.SAY: "message", SaidKind.NOTICE: "notice", SaidKind.REACTION: "reaction", SaidKind.EDIT: "newer text"}
"""For the journal."""


class Speaker(Protocol):
    """What the voice needs of the homeserver; `matrix.client.Account` is one."""

    async def send(self, room_id: str, event_type: str, txn_id: str, content: Mapping[str, Any]) -> str: ...

    async def messages_before(self, room_id: str, start: str | None) -> MessagesPage: ...


class Voice:
    """`run` until cancelled; `look` whenever there may be something new."""

    def __init__(
        self,
        home: Home,
        name: str,
        mind: Mind,
        *,
        identity: Identity,
        journal: Journal,
        account: Speaker,
        look_s: float,
        now: Callable[[], int] = now_ms,
    ) -> None:
        self._home, self._name, self._mind = home, name, mind
        self._account, self._identity, self._journal = account, identity, journal
        self._look_s, self._now = look_s, now
        self._nudge = Nudge()
        self._busy: set[str] = set()
        self._fault: MindBodyError | None = None
        self.settled = False
        """Nothing was queued at the last look."""

    @property
    def speaking(self) -> bool:
        """Whether something is on its way to the homeserver: a brake has not taken hold before this is over."""
        return bool(self._busy)

    def look(self) -> None:
        """Something may have been queued, or the brake may have moved."""
        self._nudge.set()

    async def run(self) -> None:
        """Raises MatrixUnauthorised, and StorageError or MindFileError from the mind."""
        async with trio.open_nursery() as nursery:
            while self._fault is None:
                self._nudge.clear()
                next_at = self._start_due(nursery)
                wait_s = self._look_s if next_at is None else (next_at - self._now()) / 1000
                await self._nudge.wait(min(max(wait_s, 0.001), self._look_s), lambda: self.settled and self._mind.resting)
            nursery.cancel_scope.cancel()
        if self._fault is not None:
            raise self._fault

    def _start_due(self, nursery: trio.Nursery) -> int | None:
        with self._mind.read() as tx:
            rows = outbox.next_said(tx)
        self.settled = not rows
        if not rows or self._held():
            return None
        due = pick_due(rows, self._busy, self._now())
        for row in due.rows:
            self._busy.add(row.room_id)
            nursery.start_soon(self._serve_room, row)
        return due.next_at

    async def _serve_room(self, first: Said) -> None:
        """Rows of one room, as long as each goes out and is followed by one that nothing else goes before."""
        row: Said | None = first
        try:
            while row is not None and not self._held() and await self._say(row):
                with self._mind.read() as tx:
                    following = outbox.next_said_in(tx, first.room_id)
                row = following if following and may_follow(following, row, self._now()) else None
        except MindBodyError as error:
            self._fault = self._fault or error
        finally:
            self._busy.discard(first.room_id)
            self._nudge.set()

    def _held(self) -> bool:
        return isinstance(read_control(self._home, self._name), Held)

    async def _say(self, row: Said) -> bool:
        """One row; whether it is over and done with."""
        try:
            event_id = await self._find_or_send(row)
        except MatrixUnauthorised:
            raise
        except MatrixError as error:
            return self._set_back(row, error)
        if event_id is None:
            return True
        with self._mind.write() as tx:
            outbox.mark_sent(tx, row.id, event_id)
        crash_point("voice.T4b")
        waited = self._now() - row.queued_at
        self._note(row, "said.sent", f"A {WORDS[row.kind]} was sent to {row.room_id}.", EVENT=event_id, WAITED_MS=waited)
        return True

    async def _find_or_send(self, row: Said) -> str | None:
        """The event's id; None where the row was refused here."""
        renewed = False
        with self._mind.read() as tx:
            related = outbox.read_related(tx, row)
        if must_look_first(row, self._identity.device_id, self._now()):
            found = await self._find_in_history(row, {row.reply_to, row.thread, *related.values()})
            if found is not None:
                self._note(row, "said.found", f"A {WORDS[row.kind]} that was attempted before is in the history of {row.room_id}.")
                return found
            renewed = True
        content = relate_content(row, related)
        if content is None:
            self._give_up(row, "what it relates to was never sent")
            return None
        crash_point("voice.before-T4a")
        if renewed or row.state is SaidState.QUEUED:
            with self._mind.write() as tx:
                outbox.mark_attempted(tx, row.id, self._identity.device_id, self._now(), renewed=renewed)
        crash_point("voice.T4a")
        event_id = await self._account.send(row.room_id, row.event_type, row.id, content)
        crash_point("voice.sent")
        return event_id

    async def _find_in_history(self, row: Said, before: set[str | None]) -> str | None:
        """Our event by the said id in its content, or by its transaction id where the content was redacted.

        `before`: events that it relates to, so that it cannot be older than they are.
        """
        oldest = (row.attempted_at or row.queued_at) - HISTORY_SLACK_MS
        start: str | None = None
        while True:
            page = await self._account.messages_before(row.room_id, start)
            for event in page.events:
                if event.sender == self._identity.user_id and row.id in {event.transaction_id, _said_id(event)}:
                    return event.event_id
            # All of a page: one stranger's event may bear any date.
            past = all(event.sent_at < oldest for event in page.events) if page.events else False
            answered = any(event.event_id in before for event in page.events)
            if page.end is None or page.end == start or past or answered:
                return None
            start = page.end

    def _set_back(self, row: Said, error: MatrixError) -> bool:
        setback = plan_setback(error, row, self._now(), int(self._look_s * 1000))
        match setback:
            case Wait(until, reason):
                with self._mind.write() as tx:
                    outbox.mark_wait(tx, row.id, until, reason)
                wait_s = (until - self._now()) / 1000
                self._note(
                    row, "said.waits", f"A {WORDS[row.kind]} for {row.room_id} waits {wait_s:.1f} s: {reason}.", TRIES=row.tries + 1
                )
                return False
            case GiveUp(reason):
                self._give_up(row, reason)
                return True
            case _:
                assert_never(setback)

    def _give_up(self, row: Said, reason: str) -> None:
        with self._mind.write() as tx:
            outbox.mark_refused(tx, row.id, reason)
        self._journal.note(
            "said.refused",
            f"A {WORDS[row.kind]} for {row.room_id} was refused and is not sent again: {reason}.",
            level="warning",
            SAID=row.id,
            ROOM=row.room_id,
            TURN=row.turn_id,
            REASON=reason,
        )

    def _note(self, row: Said, kind: str, sentence: str, **fields: Any) -> None:
        self._journal.note(kind, sentence, SAID=row.id, ROOM=row.room_id, TURN=row.turn_id, **fields)


def _said_id(event: Event) -> str | None:
    return event.said_id if isinstance(event, Message | Edit | Reaction) else None
