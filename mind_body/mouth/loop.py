"""Rule: whether a bot's mail is turned away when it is heard (cases W2).

Only the loop budget is asked here: what it turns away is over, and a person's word begins anew. The day's ceiling of one account is
the heartbeat's: what it turns away is mail all the same, and waits for the day to be over.
"""

from mind_body.control.loops import Budget, TurnedAway, judge_mail
from mind_body.mind.changes import EditedHeard, HeardChange, NewHeard
from mind_body.mind.records import Room, Standing
from mind_body.mind.wake_facts import Place, WaitingMail
from mind_body.settings import MindConfig


def is_weighed(change: HeardChange) -> bool:
    """Whether the count of a place has a say in it at all."""
    return isinstance(change, NewHeard | EditedHeard) and change.standing is Standing.MAIL and not change.person


def turn_away(change: NewHeard | EditedHeard, room: Room, place: Place, config: MindConfig, now: int) -> TurnedAway | None:
    """Why it brings no turn in this place; None where it may."""
    event_id = change.event_id if isinstance(change, NewHeard) else change.target
    mail = WaitingMail(
        conversation=room.conversation,
        room_id=room.room_id,
        thread=place.thread,
        sender=change.sender,
        person=change.person,
        count=1,
        oldest_at=now,
        newest_at=now,
        oldest_event=event_id,
        newest_event=event_id,
    )
    return judge_mail(mail, Budget({(room.room_id, place.thread): place}, {}, config))
