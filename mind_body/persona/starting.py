"""Loop: what a reply asks of her Self, as part of T3b: admitted, put before its asker, told, or dropped with its reason."""

from dataclasses import dataclass, replace

from mind_body.ids import new_id
from mind_body.matrix.notices import NoticeKey, render_notice
from mind_body.mind.campaigns import read_campaign
from mind_body.mind.follow_ups import admit_follow_up
from mind_body.mind.outbox import admit_said
from mind_body.mind.records import RunKind
from mind_body.mind.runs import live_run
from mind_body.mind.sessions import read_heard_senders, read_rehydration
from mind_body.mind.steers import admit_steer
from mind_body.mind.store import Transaction
from mind_body.mind.work_records import NewFollowUp
from mind_body.persona.opening import Opened, Place
from mind_body.persona.reply import Read
from mind_body.persona.work_acts import Start, Tell, is_trusted, judge_start, judge_tell, named_in


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of it."""

    started: bool = False
    """There is work for the heartbeat to look at."""
    told: bool = False
    """There is something for the running Self."""
    notes: tuple[str, ...] = ()
    """For the journal."""


NOTHING_ASKED = Asked()


def ask_self(tx: Transaction, place: Place, opened: Opened, read: Read, now: int) -> Asked:
    """Each on its own, inside the transaction that closes the turn."""
    if read.start is None and read.tell is None:
        return NOTHING_ASKED
    desk = _Desk(tx, place, opened, now)
    asked = desk.start(read.start) if read.start is not None else NOTHING_ASKED
    if read.tell is None:
        return asked
    told = desk.tell(read.tell)
    return replace(asked, told=told.told, notes=(*asked.notes, *told.notes))


@dataclass(frozen=True, slots=True)
class _Desk:
    tx: Transaction
    place: Place
    opened: Opened
    now: int

    def start(self, start: Start) -> Asked:
        fault = judge_start(start, self.place.config.people)
        if fault is not None:
            return Asked(notes=(fault,))
        asked, work_id = start.asked, new_id()
        campaign, notes = self._campaign(start)
        new = NewFollowUp(
            conversation=self.opened.batch.conversation,
            room_id=asked.room_id,
            asked_in=asked.event_id,
            asked_by=asked.sender,
            brief=start.brief,
            workspace=start.workspace,
            campaign=campaign,
        )
        if self._is_trusted():
            admit_follow_up(self.tx, new, self.now, follow_up_id=work_id)
            return Asked(started=True, notes=(f"work {work_id} is open", *notes))
        notice = render_notice(
            self.place.config.persona.language,
            NoticeKey.CONFIRM_START,
            work_id,
            asked.room_id,
            thread=asked.thread,
            reply_to=asked.event_id,
            who=asked.sender,
            brief=start.brief,
        )
        admit_said(self.tx, [notice], None, self.now)
        admit_follow_up(self.tx, new, self.now, follow_up_id=work_id, confirm_said=notice.id)
        return Asked(started=True, notes=(f"work {work_id} waits for {asked.sender} to confirm it", *notes))

    def _campaign(self, start: Start) -> tuple[str | None, tuple[str, ...]]:
        """The work is for a campaign only while that is open; the work itself is done anyway."""
        found = read_campaign(self.tx, start.campaign) if start.campaign else None
        if found is not None and found.closed_at is None:
            return found.slug, ()
        return None, ("`start_self_run`: no campaign of that slug is open",) if start.campaign else ()

    def tell(self, tell: Tell) -> Asked:
        fault = judge_tell(tell, self.place.config.people)
        if fault is not None:
            return Asked(notes=(fault,))
        run = live_run(self.tx, RunKind.SELF_RUN)
        if run is None or run.conversations != (self.opened.batch.conversation,):
            return Asked(notes=("`tell_self`: no work of this conversation is under way",))
        trusted = self._is_trusted()
        text = tell.text if trusted else tell.asked.body
        admit_steer(self.tx, run.id, None, "steer", tell.asked.sender, text, self.now)
        return Asked(told=True, notes=() if trusted else ("`tell_self`: the asker's own message is told instead of hers",))

    def _is_trusted(self) -> bool:
        session = self.opened.plan.session_id
        senders = read_heard_senders(self.tx, session, named_in(read_rehydration(self.tx, session)))
        return is_trusted(senders, self.place.config.people, self.place.me.user_id)
