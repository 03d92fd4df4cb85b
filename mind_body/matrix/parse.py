"""Shapes: a stranger's JSON to the events of `events.py`, whose rules hold here. Total: nothing that is sent to us raises."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mind_body.matrix.events import (
    SAID_KEY,
    Edit,
    Encrypted,
    Encryption,
    Event,
    JoinRules,
    Member,
    Mentions,
    Message,
    Name,
    Reaction,
    Redaction,
    Tombstone,
    Unknown,
)

SAFE_INT = 2**53 - 1
"""Matrix integers are within ±(2^53 - 1)."""


def parse_events(events: Iterable[object]) -> tuple[Event, ...]:
    """Every one that is an event, in order."""
    return tuple(parsed for parsed in map(parse_event, events) if parsed is not None)


def parse_stripped(events: Iterable[object]) -> tuple[Event, ...]:
    """The stripped state of an invite, whose events have no ids."""
    return tuple(_parse(as_dict(event), "") for event in events if text_of(as_dict(event), "sender"))


def parse_event(event: object) -> Event | None:
    """One event, or None where it has no usable id or sender. Never raises."""
    raw = as_dict(event)
    event_id = text_of(raw, "event_id")
    return _parse(raw, event_id) if event_id and text_of(raw, "sender") else None


def _parse(raw: dict[str, Any], event_id: str) -> Event:
    header: dict[str, Any] = {
        "event_id": event_id,
        "sender": text_of(raw, "sender"),
        "sent_at": count_of(raw, "origin_server_ts") or 0,
        "transaction_id": text_of(as_dict(raw.get("unsigned")), "transaction_id") or None,
        "raw": raw,
    }
    kind = text_of(raw, "type")
    content = raw.get("content")
    is_state = isinstance(raw.get("state_key"), str)
    parser = (_STATE if is_state else _MESSAGES).get(kind)
    if parser is None:
        return Unknown(type=kind, why="not used here", **header)
    if not isinstance(content, dict):
        return Unknown(type=kind, why="no content", **header)
    if "redacted_because" in as_dict(raw.get("unsigned")) and not is_state:
        return Unknown(type=kind, why="redacted", **header)
    fault = parser(content, raw, header)
    return fault if isinstance(fault, Event) else Unknown(type=kind, why=fault, **header)


_Parser = Callable[[dict[str, Any], dict[str, Any], dict[str, Any]], Event | str]


def _parse_message(content: dict[str, Any], raw: dict[str, Any], header: dict[str, Any]) -> Event | str:
    relation = as_dict(content.get("m.relates_to"))
    target = text_of(relation, "event_id")
    if relation.get("rel_type") == "m.replace":
        new = as_dict(content.get("m.new_content"))
        if not target or not isinstance(new.get("body"), str):
            return "an edit without target or text"
        return Edit(target=target, said_id=text_of(content, SAID_KEY) or None, **_said_words(new, raw, quoting=False), **header)
    if not isinstance(content.get("body"), str):
        return "no body"
    reply_to, thread = _relations(relation)
    return Message(
        reply_to=reply_to,
        thread=thread,
        said_id=text_of(content, SAID_KEY) or None,
        **_said_words(content, raw, quoting=bool(text_of(as_dict(relation.get("m.in_reply_to")), "event_id"))),
        **header,
    )


def _said_words(content: dict[str, Any], raw: dict[str, Any], *, quoting: bool) -> dict[str, Any]:
    body, html = text_of(content, "body"), text_of(content, "formatted_body")
    if quoting:
        body, html = strip_reply_fallback(body), _strip_mx_reply(html)
    return {
        "msgtype": "m.sticker" if raw.get("type") == "m.sticker" else text_of(content, "msgtype") or "m.text",
        "body": body,
        "formatted_body": html if html and content.get("format") == "org.matrix.custom.html" else None,
        "mentions": _parse_mentions(content.get("m.mentions")),
    }


def _parse_encrypted(content: dict[str, Any], _raw: dict[str, Any], header: dict[str, Any]) -> Event | str:
    # Relations stay readable on an encrypted event; its text does not.
    relation = as_dict(content.get("m.relates_to"))
    reply_to, thread = _relations(relation)
    edits = text_of(relation, "event_id") if relation.get("rel_type") == "m.replace" else ""
    return Encrypted(reply_to=reply_to, thread=thread, edits=edits or None, **header)


def _parse_redaction(content: dict[str, Any], raw: dict[str, Any], header: dict[str, Any]) -> Event | str:
    # Room version 11 moved `redacts` into the content; servers still serve both.
    target = text_of(content, "redacts") or text_of(raw, "redacts")
    return Redaction(target=target, **header) if target else "redacts nothing"


def _parse_reaction(content: dict[str, Any], _raw: dict[str, Any], header: dict[str, Any]) -> Event | str:
    relation = as_dict(content.get("m.relates_to"))
    target, key = text_of(relation, "event_id"), text_of(relation, "key")
    if relation.get("rel_type") != "m.annotation" or not target or not key:
        return "no annotation"
    return Reaction(target=target, key=key, said_id=text_of(content, SAID_KEY) or None, **header)


def _parse_member(content: dict[str, Any], raw: dict[str, Any], header: dict[str, Any]) -> Event | str:
    membership, user_id = text_of(content, "membership"), text_of(raw, "state_key")
    if not membership or not user_id:
        return "no membership"
    return Member(
        user_id=user_id,
        membership=membership,
        name=text_of(content, "displayname"),
        direct=content.get("is_direct") is True,
        **header,
    )


def _parse_join_rules(content: dict[str, Any], _raw: dict[str, Any], header: dict[str, Any]) -> Event | str:
    rule = text_of(content, "join_rule")
    return JoinRules(join_rule=rule, **header) if rule else "no join rule"


def _parse_name(content: dict[str, Any], _raw: dict[str, Any], header: dict[str, Any]) -> Event | str:
    return Name(name=text_of(content, "name"), **header)


def _parse_encryption(content: dict[str, Any], _raw: dict[str, Any], header: dict[str, Any]) -> Event | str:
    return Encryption(algorithm=text_of(content, "algorithm"), **header)


def _parse_tombstone(content: dict[str, Any], _raw: dict[str, Any], header: dict[str, Any]) -> Event | str:
    replacement = text_of(content, "replacement_room")
    return Tombstone(replacement=replacement, **header) if replacement else "no replacement room"


_MESSAGES: dict[str, _Parser] = {
    "m.room.message": _parse_message,
    "m.sticker": _parse_message,
    "m.room.encrypted": _parse_encrypted,
    "m.room.redaction": _parse_redaction,
    "m.reaction": _parse_reaction,
}
_STATE: dict[str, _Parser] = {
    "m.room.member": _parse_member,
    "m.room.join_rules": _parse_join_rules,
    "m.room.name": _parse_name,
    "m.room.encryption": _parse_encryption,
    "m.room.tombstone": _parse_tombstone,
}

_QUOTE_LEAD = re.compile(r"> (\* )?<@[^>\n]+>")


def strip_reply_fallback(body: str) -> str:
    """Cut the leading `> <@user> …` quote that older clients put before a reply, and the blank line after it."""
    if not _QUOTE_LEAD.match(body):
        return body
    lines = body.split("\n")
    quoted = 0
    while quoted < len(lines) and lines[quoted].startswith(">"):
        quoted += 1
    rest = lines[quoted + 1 :] if quoted < len(lines) and not lines[quoted].strip() else lines[quoted:]
    return "\n".join(rest)


def _strip_mx_reply(html: str) -> str:
    # By searching, not by a pattern: a stranger's HTML must not cost quadratic time.
    lowered = html.lower()
    end = lowered.find("</mx-reply>")
    return html[end + len("</mx-reply>") :] if lowered.lstrip().startswith("<mx-reply>") and end >= 0 else html


def _relations(relation: dict[str, Any]) -> tuple[str | None, str | None]:
    """(reply to, thread). A thread's `m.in_reply_to` is for old clients where it says `is_falling_back`."""
    reply_to = text_of(as_dict(relation.get("m.in_reply_to")), "event_id") or None
    if relation.get("rel_type") != "m.thread":
        return reply_to, None
    return (None if relation.get("is_falling_back") is True else reply_to), text_of(relation, "event_id") or None


def _parse_mentions(value: object) -> Mentions | None:
    if not isinstance(value, dict):
        return None
    return Mentions(frozenset(u for u in as_list(value.get("user_ids")) if isinstance(u, str)), value.get("room") is True)


# What a stranger's JSON holds, or the empty thing of that kind.


def as_dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def text_of(parent: Mapping[str, Any], key: str) -> str:
    value = parent.get(key)
    # A lone surrogate is legal JSON and illegal UTF-8.
    return value.encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else ""


def count_of(parent: Mapping[str, Any], key: str) -> int | None:
    value = parent.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= SAFE_INT else None
