"""Rule: notices, the fixed sentences that are not hers. One catalogue per language; any organ may queue one.

1. A notice is `m.notice`: never mail, to her or to any other bot (cases D7).
2. Its id is made from room, key and cause: the same cause is said once, whoever notices it, however often.
3. It tells the people in the room what they cannot see and what they can do. No error text, no figure of the operator's.
"""

from collections.abc import Mapping
from enum import StrEnum

from mind_body.clock import render_utc
from mind_body.ids import derived_id
from mind_body.matrix.events import SAID_KEY
from mind_body.mind.records import NewSaid, SaidKind


class NoticeKey(StrEnum):
    CANNOT_READ_ENCRYPTED = "cannot_read_encrypted"
    FAILED_MESSAGE = "failed_message"
    """One message brought her down again and again; it is closed. Value: none; it replies to that message."""
    LIMITED = "limited"
    """A plan limit. Value: `until`, ms since the epoch."""
    UNREACHABLE = "unreachable"
    """Whoever answers for her cannot be reached."""


CATALOGUES: Mapping[str, Mapping[NoticeKey, str]] = {
    "en": {
        NoticeKey.CANNOT_READ_ENCRYPTED: (
            "This room is encrypted, and I cannot read encrypted messages yet. "
            "Please write to me in a room without encryption: make a new room and switch “Enable end-to-end encryption” off."
        ),
        NoticeKey.FAILED_MESSAGE: (
            "I could not answer this message: every attempt failed, so I have set it aside. Please ask in other words."
        ),
        NoticeKey.LIMITED: "I have used up what I may use for now. I will answer after {until}; nothing you write is lost.",
        NoticeKey.UNREACHABLE: (
            "I cannot think just now: my model cannot be reached. I will answer when it is back; nothing you write is lost."
        ),
    },
}


def render_notice(
    language: str,
    key: NoticeKey,
    cause: str,
    room_id: str,
    *,
    thread: str | None = None,
    reply_to: str | None = None,
    **values: int | str,
) -> NewSaid:
    """A said row. `cause` is what it is said once for: an event id, a turn, the end of a limit. Unknown language: English."""
    said_id = derived_id("notice", room_id, key, cause)
    shown = {name: _show(name, value) for name, value in values.items()}
    body = CATALOGUES.get(language, CATALOGUES["en"])[key].format_map(shown)
    content = {"msgtype": "m.notice", "body": body, "m.mentions": {}, SAID_KEY: said_id}
    return NewSaid(said_id, SaidKind.NOTICE, room_id, "m.room.message", content, thread=thread, reply_to=reply_to)


def _show(name: str, value: int | str) -> str:
    return render_utc(value).replace("T", " ").replace("Z", " UTC") if name == "until" and isinstance(value, int) else str(value)
