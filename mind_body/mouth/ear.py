"""Loop: one Mind's ear.

1. One /sync at a time, from the position. Its rows and the new position are one transaction (T1); until that is durable the
   homeserver is asked for the same again. There is one owner of the position: this loop.
2. She hears also while she is held: nothing may be lost. She only joins nothing then (`invites.py`).
3. A sync that says nothing is not written: the position in memory runs ahead of the stored one by answers that were empty.
4. Waits are told and bounded: 429 as long as it says, everything else with back-off; the first success is told too. Of a long row
   of failures the 1st, 2nd, 4th, 8th, … is told: a homeserver that is away for a night must not fill a thousand Minds' journal.
5. Invites and gaps have tasks of their own, one per room: a slow join or a long gap holds up neither the ear nor another room. So
   has the room in which an operator can be asked, once she has heard a first time.
"""

from collections.abc import Awaitable, Callable

import trio

from mind_body.clock import now_ms
from mind_body.crash import crash_point
from mind_body.errors import MatrixError, MatrixLimited, MatrixUnauthorised, StorageError
from mind_body.matrix.wire import Sync
from mind_body.mind.hearing import expire_context, read_gaps
from mind_body.mind.questions import read_open_questions
from mind_body.mind.reactions import expire_reactions
from mind_body.mind.records import Membership, Room
from mind_body.mind.rooms import read_position, read_rooms
from mind_body.mouth.fill import DAY_MS, fill_gaps
from mind_body.mouth.invites import answer_invite, follow_upgrade
from mind_body.mouth.question_room import QuestionRoom
from mind_body.mouth.rouse import rouse
from mind_body.mouth.seat import Seat
from mind_body.mouth.take_in import TakeIn
from mind_body.mouth.tell import tell_taken

EXPIRY_S = 3600.0
STORE_EMPTY_MS = 600_000
"""A position that only empty answers have moved is stored this often, and with the first of them: when that was tells who reads the
record that she hears. Each time a resting Mind is roused."""
HOLLOW_MAX = 10
"""So many empty answers in a row that came at once, and the next is waited for: a homeserver that does not hold a /sync open (or a
proxy that does not let it) would be asked as fast as it answers, at the cost of all other Minds."""
HOLLOW_S = 1.0
GIVE_WAY_S = 0.02
"""After mail, whoever was poked goes first. The next /sync, here and at the homeserver, would be in its way where there are two
cores: by `probes/latency.py` a tenth of our part of the way from a message to its model request."""


class Ear:
    """`run` until cancelled."""

    def __init__(self, seat: Seat) -> None:
        self._seat = seat
        self._since: str | None = None
        self._stored_at = 0
        self._tries = 0
        self._hollow = 0
        self._hears = False
        self._questions = QuestionRoom(seat)
        self._busy: set[tuple[str, str]] = set()

    async def run(self, started: Callable[[], None]) -> None:
        """Raises StorageError or MindFileError where the mind cannot be read at all."""
        seat = self._seat
        with seat.mind.write() as tx:
            TakeIn(tx, seat.user_id, seat.config, now_ms()).conversations()
        with seat.mind.read() as tx:
            self._since = read_position(tx)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._do_chores, nursery)
            nursery.start_soon(self._expire)
            started()
            while True:
                await self._listen()

    async def _listen(self) -> None:
        """One /sync and its T1."""
        seat = self._seat
        account = await seat.account()
        begun = trio.current_time()
        try:
            sync = await account.sync(self._since, seat.host.sync_timeout_s)
            crash_point("ear.sync-answered")
            roused = self._take(sync)
        except MatrixUnauthorised:
            seat.refuse(account)
        except MatrixLimited as error:
            await self._wait_out(f"the homeserver asks her to wait: {error}", error.retry_after_ms / 1000)
        except (MatrixError, StorageError) as error:
            await self._wait_out(str(error))
        else:
            seat.deaf = False
            if self._tries:
                seat.journal.note("ear.hears-again", f"She hears again, after {self._tries} attempts in vain.")
            self._tries = 0
            if not self._hears:
                self._hears = True
                seat.chores.set()
            await self._pace(sync, trio.current_time() - begun, roused=roused)
        seat.progress()

    async def _pace(self, sync: Sync, took_s: float, *, roused: bool) -> None:
        if roused:
            await trio.sleep(GIVE_WAY_S)
        hollow_s = min(HOLLOW_S, self._seat.host.sync_timeout_s / 2)
        self._hollow = self._hollow + 1 if sync.empty and took_s < hollow_s else 0
        if self._hollow > HOLLOW_MAX:
            await trio.sleep(hollow_s)

    def _take(self, sync: Sync) -> bool:
        """Whether it may be the reason for a run."""
        seat, now = self._seat, now_ms()
        if sync.empty and self._since is not None and now - self._stored_at < STORE_EMPTY_MS:
            self._since = sync.next_batch
            return False
        with seat.mind.write() as tx:
            taken = TakeIn(tx, seat.user_id, seat.config, now).sync(sync, self._since)
        crash_point("ear.T1")
        self._since, self._stored_at = sync.next_batch, now
        rouse(seat, taken)
        tell_taken(seat, taken)
        return taken.for_heartbeat

    async def _wait_out(self, why: str, at_least_s: float = 0.0) -> None:
        tries = self._tries + 1
        if tries & (tries - 1) == 0:
            self._seat.journal.note("ear.waits", f"She cannot hear just now: {why}.", level="warning", TRIES=tries)
        self._seat.deaf = True
        await self._seat.wait_out(self._tries, at_least_s)
        self._tries = tries

    async def _do_chores(self, nursery: trio.Nursery) -> None:
        """Whatever the mind says is open: at a nudge, and at each look."""
        seat = self._seat
        while True:
            seat.chores.clear()
            with seat.mind.read() as tx:
                invited = read_rooms(tx, Membership.INVITED)
                upgraded = [room for room in read_rooms(tx, Membership.JOINED) if room.upgraded_to]
                gaps = read_gaps(tx)
                unasked = any(one.room_id is None for one in read_open_questions(tx))
            for gap in gaps:
                self._start(nursery, "gap", gap.room_id, self._filling(gap.room_id))
            for room in invited:
                self._start(nursery, "invite", room.room_id, self._answering(room.room_id))
            for room in upgraded:
                self._start(nursery, "upgrade", room.room_id, self._following(room), again=False)
            if unasked and self._hears:
                self._start(nursery, "question", "", self._questions.open)
            seat.open_chores = bool(gaps or invited or unasked)
            await seat.chores.wait(seat.host.look_s, lambda: not seat.open_chores and seat.mind.resting)

    def _filling(self, room_id: str) -> Callable[[], Awaitable[None]]:
        return lambda: fill_gaps(self._seat, room_id)

    def _answering(self, room_id: str) -> Callable[[], Awaitable[None]]:
        return lambda: answer_invite(self._seat, room_id)

    def _following(self, room: Room) -> Callable[[], Awaitable[None]]:
        return lambda: follow_upgrade(self._seat, room)

    def _start(
        self, nursery: trio.Nursery, what: str, room_id: str, chore: Callable[[], Awaitable[None]], *, again: bool = True
    ) -> None:
        """One task per room and kind at a time."""
        key = (what, room_id)
        if key in self._busy:
            return
        self._busy.add(key)

        async def run() -> None:
            try:
                await chore()
            except StorageError as error:
                self._seat.journal.note("ear.storage", f"The mind could not be written: {error}.", level="error", ROOM=room_id)
            finally:
                if again:
                    self._busy.discard(key)

        nursery.start_soon(run)

    async def _expire(self) -> None:
        seat = self._seat
        while True:
            try:
                with seat.mind.write() as tx:
                    before = now_ms() - int(seat.host.context_keep_days * DAY_MS)
                    gone = expire_context(tx, before)
                    expire_reactions(tx, before)
            except StorageError as error:
                seat.journal.note("ear.storage", f"Old context could not be deleted: {error}.", level="error")
            else:
                if gone:
                    seat.journal.note("ear.context-expired", f"{gone} rows of old context were deleted.")
            await trio.sleep(EXPIRY_S)
