"""Loop: questions to the operators, put on record and asked (design §9), in the transaction of whoever acts.

1. A question is on record from when it arises, whether or not it can be asked: `mind questions` shows it.
2. It is asked by a notice in a direct conversation with an operator. Where there is none the mouth makes one, and the question is
   asked when that is there.
"""

from mind_body.control.asking import is_asking_room
from mind_body.matrix.notices import NoticeKey, render_notice
from mind_body.mind.asking_records import Question
from mind_body.mind.outbox import admit_said
from mind_body.mind.questions import mark_asked, read_open_questions
from mind_body.mind.records import Membership, Room
from mind_body.mind.rooms import read_members, read_rooms
from mind_body.mind.store import Transaction
from mind_body.settings import MindConfig


def has_unasked(tx: Transaction, config: MindConfig) -> bool:
    """Whether a question on record can be asked now."""
    return any(one.room_id is None for one in read_open_questions(tx)) and _find_room(tx, config) is not None


def ask_open(tx: Transaction, config: MindConfig, now: int) -> list[Question]:
    """Ask what is on record and was not asked; those that are asked now."""
    unasked = [one for one in read_open_questions(tx) if one.room_id is None]
    room = _find_room(tx, config) if unasked else None
    if room is None:
        return []
    for one in unasked:
        notice = render_notice(config.persona.language, NoticeKey.QUESTION, one.id, room.room_id, text=one.text)
        admit_said(tx, [notice], None, now)
        mark_asked(tx, one.id, room.room_id, notice.id)
    return unasked


def _find_room(tx: Transaction, config: MindConfig) -> Room | None:
    rooms = read_rooms(tx, Membership.JOINED)
    return next((room for room in rooms if is_asking_room(room, read_members(tx, room.room_id), config.people)), None)
