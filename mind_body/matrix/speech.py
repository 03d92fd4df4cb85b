"""Rule: what she says, as said rows: rendered, split and final before they are admitted (design §3).

1. The body is her Markdown as it is; the HTML is made from it. Every content carries its said id, so that the room's history tells
   what has been sent.
2. `m.mentions` is always there: it names the user ids that her text spells out, and never the room, so that no client guesses.
3. Relations are not in the content. Columns say them, and `relations.py` writes them when the row is sent and all ids are known.
4. A part is at most 48 KiB of canonical JSON. An event may have 65,536 bytes; of the rest the relations take less than 1 KiB, and
   the homeserver's own fields (up to 20 previous and 10 auth events at 46 bytes, hashes, signatures, two ids of 255) about 3. What
   remains is room for servers that sign twice.
"""

import json
import re
from typing import Any

from mind_body.matrix.events import SAID_KEY
from mind_body.matrix.markdown import render_html
from mind_body.matrix.split import Part, split_text
from mind_body.mind.records import NewSaid, SaidKind

CONTENT_MAX = 48 * 1024
"""Bytes of canonical JSON of one content, relations not included."""
MENTIONS_MAX = 50
_USER_ID = re.compile(r"(?<![\w@./#])@[^\s:@<>()\[\]{},;\"'`*]{1,255}:[\w.-]+(?::\d+)?")


def measure_content(content: dict[str, Any]) -> int:
    """Bytes as the homeserver counts them (canonical JSON)."""
    return len(json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode())


def render_say(said_base_id: str, room_id: str, text: str, *, thread: str | None, reply_to: str | None) -> list[NewSaid]:
    """One row per part; the first is the reply, all are in the thread. Nothing for a text without a visible character."""
    clean = clean_text(text)
    # The id of a later part is longer; measured with room for six figures.
    longest_id = f"{said_base_id}.999999"
    parts = split_text(clean, lambda part: _fits(longest_id, part))
    visible = [part for part in parts if part.body.strip()]
    return [
        NewSaid(
            id=(said_id := said_base_id if number == 1 else f"{said_base_id}.{number}"),
            kind=SaidKind.SAY,
            room_id=room_id,
            event_type="m.room.message",
            content=_content(said_id, part),
            thread=thread,
            reply_to=reply_to if number == 1 else None,
        )
        for number, part in enumerate(visible, start=1)
    ]


def render_reaction(said_id: str, room_id: str, key: str, event_id: str) -> NewSaid:
    """A reaction to an event; `key` is what is shown, usually one emoji."""
    content = {SAID_KEY: said_id, "m.relates_to": {"rel_type": "m.annotation", "key": clean_text(key)}}
    return NewSaid(said_id, SaidKind.REACTION, room_id, "m.reaction", content, reply_to=event_id)


def clean_text(text: str) -> str:
    """Text that JSON, SQLite and every client can carry: Unix line ends, no lone surrogates, no NUL."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")


def _fits(said_id: str, part: Part) -> bool:
    # Rendering costs more than counting, and what is too long as it is need not be rendered.
    return len(part.body.encode()) <= CONTENT_MAX and measure_content(_content(said_id, part)) <= CONTENT_MAX


def _content(said_id: str, part: Part) -> dict[str, Any]:
    mentioned = sorted({found.rstrip(".") for found in _USER_ID.findall(part.body)})[:MENTIONS_MAX]
    return {
        "msgtype": "m.text",
        "body": part.body,
        "format": "org.matrix.custom.html",
        "formatted_body": render_html(part.markdown),
        "m.mentions": {"user_ids": mentioned} if mentioned else {},
        SAID_KEY: said_id,
    }
