"""Loop: T1. One answer of /sync, or the last page of a gap, becomes rows, inside the transaction that the caller has open.

1. Everything that a sync says only once is written together with the position: rooms, invites, members, `m.direct`, what was heard,
   what must wait behind a gap.
2. Facts are read, the rules decide, the decision is written. Nothing here waits for the homeserver or speaks to the journal: what
   came of it is handed back, and told when it is durable.
3. A room's messages are admitted one after the other, and a bot's is weighed by the count as it is then: a person's word before it
   has begun it anew, wherever the timeline was cut.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from mind_body.control.loops import TurnedAway, name_stretch
from mind_body.control.people import listed
from mind_body.matrix.events import Event, Message
from mind_body.matrix.notices import NoticeKey, render_notice
from mind_body.matrix.parse import parse_events
from mind_body.matrix.wire import InvitedRoom, JoinedRoom, LeftRoom, MessagesPage, Sync
from mind_body.mind.changes import Admitted, Answered, EditedHeard, HeardChange, NewHeard
from mind_body.mind.hearing import (
    add_arrivals,
    admit_heard,
    close_gap,
    is_held_up,
    is_known,
    is_known_before,
    open_gap,
    read_in_thread,
    read_known,
    take_page,
)
from mind_body.mind.outbox import admit_said, read_last_event
from mind_body.mind.places import read_place, read_thread
from mind_body.mind.questions import read_open_questions, read_question_events
from mind_body.mind.records import Gap, Membership, NewSaid, Room, Standing
from mind_body.mind.rooms import next_number, read_predecessor, read_room, read_rooms, save_members, save_position, save_room
from mind_body.mind.steers import learn_root, read_live_thread
from mind_body.mind.store import Transaction
from mind_body.mind.wake_facts import Place
from mind_body.mind.work_records import LiveThread
from mind_body.mouth.asked import NOTHING_ASKED, Asked
from mind_body.mouth.gap import Caps, PagePlan, plan_page
from mind_body.mouth.hear import Listener, answered, edited, hear_events, missed_row, speakers, worth_keeping
from mind_body.mouth.loop import is_weighed, turn_away
from mind_body.mouth.room import Era, mark_direct, new_room, plan_invite, plan_joined
from mind_body.settings import MindConfig


@dataclass(slots=True)
class Taken:
    """What a transaction came to, for the journal and for whoever must look now."""

    baseline: bool = False
    heard: list[tuple[Room, Admitted]] = field(default_factory=list)
    invites: list[Room] = field(default_factory=list)
    joined: list[Room] = field(default_factory=list)
    left: list[Room] = field(default_factory=list)
    widened: list[Room] = field(default_factory=list)
    upgraded: list[Room] = field(default_factory=list)
    gaps: list[Room] = field(default_factory=list)
    encrypted: list[Room] = field(default_factory=list)
    """Rooms where it has just been queued that she cannot read them."""
    barred: list[Room] = field(default_factory=list)
    """Rooms where it has just been queued that somebody may not steer."""
    spent: list[tuple[Room, Place, TurnedAway]] = field(default_factory=list)
    """Rooms where it has just been queued that she is silent until a person speaks."""
    answered: list[tuple[Room, Answered]] = field(default_factory=list)
    """Questions that have just been answered."""
    directed: list[Room] = field(default_factory=list)
    """Rooms that are DMs from now on."""

    @property
    def mail(self) -> bool:
        return any(admitted.how == "mail" for _, admitted in self.heard)

    @property
    def for_heartbeat(self) -> bool:
        """Something that may be the reason for a run."""
        return bool(self.answered or self.directed) or any(admitted.how in {"mail", "reacted"} for _, admitted in self.heard)

    @property
    def for_self(self) -> bool:
        """Something that the running Self has to be given, or not to be given any more."""
        return any(admitted.how in {"steer", "stop"} for _, admitted in self.heard)

    @property
    def for_voice(self) -> bool:
        """Something that was queued in the same transaction."""
        return bool(self.encrypted or self.barred or self.spent or self.answered)


@dataclass(slots=True)
class TakeIn:
    """One transaction's work."""

    tx: Transaction
    user_id: str
    config: MindConfig
    now: int
    taken: Taken = field(default_factory=Taken)

    def sync(self, sync: Sync, since: str | None) -> Taken:
        """T1. `since` is the position that this sync started from; None is the first sync of all, the baseline."""
        self.taken.baseline = since is None
        direct = sync.direct or {}
        if direct:
            for before in read_rooms(self.tx):
                room = mark_direct(before, direct, self.config.people)
                save_room(self.tx, room, self.now)
                self._note_room(before, room, fresh=False)
        for invited in sync.invited:
            self._invited(invited)
        for joined in sync.joined:
            self._joined(joined, since, direct)
        for left in sync.left:
            self._left(left)
        save_position(self.tx, sync.next_batch, self.now)
        return self.taken

    def page(self, gap: Gap, page: MessagesPage, caps: Caps) -> tuple[PagePlan, Taken | None]:
        """One page of a gap, with the cursor of the next; with the last one, what waited is heard."""
        known = {event.event_id for event in page.events if is_known_before(self.tx, gap, event.event_id)}
        room = read_room(self.tx, gap.room_id)
        invited = room is not None and room.invited_by is not None
        plan = plan_page(page, gap, known, self.user_id, caps, invited=invited)
        take_page(self.tx, gap, [event.raw for event in plan.kept], cursor=plan.cursor, missed=plan.missed)
        if not plan.done:
            return plan, None
        return plan, self.gap(replace(gap, missed=gap.missed + plan.missed), cut_off=plan.cut_off)

    def gap(self, gap: Gap, *, cut_off: bool) -> Taken:
        """The gap is filled as far as it will be: what waited behind it is heard now, in order."""
        room = read_room(self.tx, gap.room_id)
        events = parse_events(arrival.event for arrival in close_gap(self.tx, gap))
        if room is None:
            return self.taken
        if gap.missed or cut_off:
            row = missed_row(
                room, gap.base, gap.missed, more=cut_off, sent_at=min((event.sent_at for event in events), default=self.now)
            )
            self._admit(row, room)
        # Where the invite itself was beyond the cap, all that is left came after it.
        self._hear(events, room, Era.HISTORY if gap.fresh and not cut_off else Era.LIVE)
        return self.taken

    def conversations(self) -> None:
        """What follows from the operator's lists may have changed with them."""
        for room in read_rooms(self.tx):
            save_room(self.tx, mark_direct(room, {}, self.config.people), self.now)

    def _invited(self, invited: InvitedRoom) -> None:
        before = read_room(self.tx, invited.room_id) or self._new(invited.room_id, Membership.INVITED)
        room = plan_invite(before, invited, self.user_id, self.config.people)
        save_room(self.tx, room, self.now)
        self.taken.invites.append(room)

    def _joined(self, joined: JoinedRoom, since: str | None, direct: Mapping[str, tuple[str, ...]]) -> None:
        found = read_room(self.tx, joined.room_id)
        fresh = found is None or found.membership is not Membership.JOINED
        before = found or self._new(joined.room_id, Membership.JOINED)
        plan = plan_joined(before, joined, self.user_id, self.config.people, since, fresh=fresh)
        room = mark_direct(plan.room, direct, self.config.people)
        save_room(self.tx, room, self.now)
        save_members(self.tx, room.room_id, plan.members)
        self._note_room(before, room, fresh=fresh)
        if plan.newly_encrypted and not self.taken.baseline:
            self._say_encrypted(room)
        kept = [event.raw for event in plan.events if worth_keeping(event, self.user_id)]
        if plan.gap is not None:
            open_gap(self.tx, room.room_id, plan.gap.cursor, self.now, until=plan.gap.until, fresh=plan.gap.fresh)
            self.taken.gaps.append(room)
            add_arrivals(self.tx, room.room_id, kept)
        elif is_held_up(self.tx, room.room_id):
            add_arrivals(self.tx, room.room_id, kept)
        else:
            self._hear(plan.events, room, plan.era)

    def _left(self, left: LeftRoom) -> None:
        known = read_room(self.tx, left.room_id)
        if known is not None and known.membership in {Membership.JOINED, Membership.INVITED}:
            known = replace(known, membership=Membership.LEFT, all_mail=False)
            save_room(self.tx, known, self.now)
            self.taken.left.append(known)

    def _hear(self, events: Sequence[Event], room: Room, era: Era) -> None:
        known = read_known(self.tx, room.room_id, [*speakers(events), self.user_id], answered(events))
        at_work = self._thread_at_work(events)
        in_thread = read_in_thread(self.tx, at_work.root, edited(events)) if at_work else frozenset()
        asked = self._asked(events, room)
        listener = Listener(self.user_id, self.config.people, known, at_work, in_thread, asked, self.now)
        hearing = hear_events(events, room, listener, era=era, baseline=self.taken.baseline)
        for change in hearing.changes:
            admitted = self._admit(change, room)
            if admitted.how == "barred" and at_work:
                self._say_barred(room, admitted, at_work)
        if hearing.unreadable:
            self._say_encrypted(room)

    def _admit(self, change: HeardChange, room: Room) -> Admitted:
        (admitted,) = admit_heard(self.tx, [self._weighed(change, room)], self.now)
        self.taken.heard.append((room, admitted))
        if isinstance(change, Answered) and admitted.how == "answered":
            self._say_answered(room, change)
        return admitted

    def _weighed(self, change: HeardChange, room: Room) -> HeardChange:
        """A bot's mail in a place that is spent is context."""
        if not isinstance(change, NewHeard | EditedHeard) or not is_weighed(change):
            return change
        thread = change.thread or "" if isinstance(change, NewHeard) else read_thread(self.tx, change.target)
        place = read_place(self.tx, room.room_id, thread)
        away = turn_away(change, room, place, self.config, self.now)
        if away is None:
            return change
        told_in, cause = name_stretch(place, self.config)
        if self._queue(render_notice(self._language, NoticeKey.LOOP_SPENT, cause, room.room_id, thread=told_in)):
            self.taken.spent.append((room, place, away))
        return replace(change, standing=Standing.CONTEXT, reason=away.reason)

    def _asked(self, events: Sequence[Event], room: Room) -> Asked:
        """The questions that are open in this room."""
        said = {one.said_id: one.id for one in read_open_questions(self.tx) if one.room_id == room.room_id and one.said_id}
        if not said:
            return NOTHING_ASKED
        here = set(said.values())
        seen = {event: question for event, question in read_question_events(self.tx).items() if question in here}
        again = {event.event_id for event in events if isinstance(event, Message) and is_known(self.tx, event.event_id)}
        return Asked(seen, said, read_last_event(self.tx, room.room_id), frozenset(again))

    def _thread_at_work(self, events: Sequence[Event]) -> LiveThread | None:
        """The thread of the live Self run. Its root may be seen here before the voice has stored its receipt."""
        for event in events:
            if isinstance(event, Message) and event.sender == self.user_id and event.said_id:
                learn_root(self.tx, event.said_id, event.event_id)
        return read_live_thread(self.tx)

    def _say_answered(self, room: Room, change: Answered) -> None:
        self.taken.answered.append((room, change))
        key = NoticeKey.QUESTION_REOPENED if change.answer == "reopen" else NoticeKey.QUESTION_RETIRED
        self._queue(render_notice(self._language, key, change.question_id, room.room_id))

    def _say_barred(self, room: Room, admitted: Admitted, at_work: LiveThread) -> None:
        """Once per person and run."""
        change = admitted.change
        if not isinstance(change, NewHeard | EditedHeard) or listed(change.sender, self.config.people.bots):
            return
        notice = render_notice(
            self._language,
            NoticeKey.MAY_NOT_STEER,
            f"{at_work.run_id} {change.sender}",
            room.room_id,
            thread=at_work.root,
            reply_to=change.event_id if isinstance(change, NewHeard) else change.target,
        )
        if self._queue(notice):
            self.taken.barred.append(room)

    def _say_encrypted(self, room: Room) -> None:
        """Once per room, whoever finds it out: the notice's id is made from its cause."""
        if not listed(room.room_id, self.config.people.rooms):
            return
        if self._queue(render_notice(self._language, NoticeKey.CANNOT_READ_ENCRYPTED, "encrypted", room.room_id)):
            self.taken.encrypted.append(room)

    @property
    def _language(self) -> str:
        return self.config.persona.language

    def _queue(self, notice: NewSaid) -> bool:
        """Whether it is new."""
        return admit_said(self.tx, [notice], None, self.now) > 0

    def _note_room(self, before: Room, room: Room, *, fresh: bool) -> None:
        if fresh:
            self.taken.joined.append(room)
        if room.direct and not before.direct:
            self.taken.directed.append(room)
        if room.widened and not before.widened:
            self.taken.widened.append(room)
        if room.upgraded_to and room.upgraded_to != before.upgraded_to:
            self.taken.upgraded.append(room)

    def _new(self, room_id: str, membership: Membership) -> Room:
        return new_room(room_id, next_number(self.tx), membership, read_predecessor(self.tx, room_id))
