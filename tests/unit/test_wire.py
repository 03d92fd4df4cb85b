"""What the homeserver says, parsed: strangers' events never raise, and mean no more than they say."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind_body.errors import MatrixUnreachable
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
from mind_body.matrix.parse import SAFE_INT, parse_event, parse_events
from mind_body.matrix.wire import parse_messages, parse_sync

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
TYPES = [
    "m.room.message",
    "m.sticker",
    "m.room.encrypted",
    "m.room.redaction",
    "m.reaction",
    "m.room.member",
    "m.room.join_rules",
    "m.room.name",
    "m.room.encryption",
    "m.room.tombstone",
    "m.room.topic",
]


def parse(kind: str, content: Any, **more: Any) -> Event:
    event = {"event_id": "$e", "sender": "@bob:x", "origin_server_ts": 5, "type": kind, "content": content, **more}
    parsed = parse_event(event)
    assert parsed is not None
    assert (parsed.event_id, parsed.sender) == ("$e", "@bob:x")
    return parsed


def message(**content: Any) -> Message:
    parsed = parse("m.room.message", {"msgtype": "m.text", "body": "hi", **content})
    assert isinstance(parsed, Message)
    return parsed


def test_a_message_carries_its_words_mentions_and_our_said_id() -> None:
    found = message(**{"m.mentions": {"user_ids": ["@ada:x", 7], "room": True}, SAID_KEY: "said-1"})
    assert (found.body, found.msgtype, found.sent_at, found.said_id) == ("hi", "m.text", 5, "said-1")
    assert found.mentions == Mentions(frozenset({"@ada:x"}), room=True)
    assert message().mentions is None


def test_html_counts_only_in_the_format_that_matrix_knows() -> None:
    assert message(formatted_body="<b>hi</b>", format="org.matrix.custom.html").formatted_body == "<b>hi</b>"
    assert message(formatted_body="<b>hi</b>", format="x").formatted_body is None


def test_a_reply_in_a_thread_is_told_from_the_fallback_for_old_clients() -> None:
    thread = {"rel_type": "m.thread", "event_id": "$root", "m.in_reply_to": {"event_id": "$last"}}
    falling_back = message(**{"m.relates_to": {**thread, "is_falling_back": True}})
    assert (falling_back.thread, falling_back.reply_to) == ("$root", None)
    meant = message(**{"m.relates_to": thread})
    assert (meant.thread, meant.reply_to) == ("$root", "$last")
    plain = message(**{"m.relates_to": {"m.in_reply_to": {"event_id": "$last"}}})
    assert (plain.thread, plain.reply_to) == (None, "$last")


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ("> <@bob:x> one\n> two\n\nthree", "three"),
        ("> * <@bob:x> waves\n\nthree\n> four", "three\n> four"),
        ("> a quote of mine\n\nthree", "> a quote of mine\n\nthree"),
        ("> <@bob:x> only", ""),
    ],
)
def test_the_quote_before_a_reply_is_cut_and_a_writers_own_quote_is_not(body: str, kept: str) -> None:
    found = message(body=body, **{"m.relates_to": {"m.in_reply_to": {"event_id": "$last"}}})
    assert found.body == kept
    assert message(body=body).body == body


def test_an_edit_is_the_new_content_of_its_target() -> None:
    content = {
        "msgtype": "m.text",
        "body": "* new",
        "m.mentions": {"user_ids": ["@only-newly:x"]},
        "m.new_content": {"msgtype": "m.text", "body": "new", "m.mentions": {"user_ids": ["@ada:x"]}},
        "m.relates_to": {"rel_type": "m.replace", "event_id": "$old"},
    }
    found = parse("m.room.message", content)
    assert isinstance(found, Edit)
    assert (found.target, found.body, found.mentions) == ("$old", "new", Mentions(frozenset({"@ada:x"}), room=False))
    del content["m.new_content"]
    assert isinstance(parse("m.room.message", content), Unknown)


def test_a_redaction_names_its_target_in_the_old_place_or_the_new() -> None:
    for found in (parse("m.room.redaction", {}, redacts="$old"), parse("m.room.redaction", {"redacts": "$old"})):
        assert isinstance(found, Redaction)
        assert found.target == "$old"
    gone = parse("m.room.message", {}, unsigned={"redacted_because": {}})
    assert isinstance(gone, Unknown)
    assert gone.why == "redacted"


def test_state_is_read_and_the_same_type_without_a_state_key_changes_nothing() -> None:
    member = parse("m.room.member", {"membership": "invite", "displayname": "Ada", "is_direct": True}, state_key="@ada:x")
    assert isinstance(member, Member)
    assert (member.user_id, member.membership, member.name, member.direct) == ("@ada:x", "invite", "Ada", True)
    shapes: list[tuple[str, dict[str, str], type[Event]]] = [
        ("m.room.join_rules", {"join_rule": "public"}, JoinRules),
        ("m.room.name", {"name": "hall"}, Name),
        ("m.room.encryption", {"algorithm": "m.megolm.v1.aes-sha2"}, Encryption),
        ("m.room.tombstone", {"replacement_room": "!new:x"}, Tombstone),
    ]
    for kind, content, shape in shapes:
        assert isinstance(parse(kind, content, state_key=""), shape)
        assert isinstance(parse(kind, content), Unknown)
    assert isinstance(parse("m.room.message", {"body": "hi", "msgtype": "m.text"}, state_key=""), Unknown)


def test_reactions_and_what_is_encrypted_are_known_by_their_relations() -> None:
    reaction = parse("m.reaction", {"m.relates_to": {"rel_type": "m.annotation", "event_id": "$old", "key": "👍"}})
    assert isinstance(reaction, Reaction)
    assert (reaction.target, reaction.key) == ("$old", "👍")
    secret = parse("m.room.encrypted", {"m.relates_to": {"rel_type": "m.thread", "event_id": "$root"}})
    assert isinstance(secret, Encrypted)
    assert secret.thread == "$root"


def test_texts_can_be_stored_and_numbers_fit() -> None:
    assert message(body=json.loads('"a\\ud800b"')).body == "a?b"
    assert parse("m.x", {}, origin_server_ts=SAFE_INT + 1).sent_at == 0


@given(st.sampled_from(TYPES), JSON, st.none() | st.text(max_size=4), JSON)
def test_a_strangers_event_never_raises(kind: str, content: Any, state_key: str | None, unsigned: Any) -> None:
    more = {} if state_key is None else {"state_key": state_key}
    parse(kind, content, unsigned=unsigned, **more)


@given(JSON, JSON, JSON, JSON)
def test_malformed_relations_never_raise(relation: Any, target: Any, mentions: Any, new_content: Any) -> None:
    for rel_type in ("m.thread", "m.replace", "m.annotation"):
        related = {"rel_type": rel_type, "event_id": target, "m.in_reply_to": relation, "key": mentions}
        for kind in TYPES[:5]:
            parse(kind, {"body": "x", "m.relates_to": related, "m.mentions": mentions, "m.new_content": new_content})
            parse(kind, {"body": "x", "m.relates_to": relation})


@given(st.lists(JSON, max_size=4))
def test_what_is_no_event_is_left_out(events: list[Any]) -> None:
    assert parse_events([*events, {"event_id": "$1", "sender": "@a:x"}])[-1:] == parse_events(
        [{"event_id": "$1", "sender": "@a:x"}]
    )


def test_a_sync_is_read_room_by_room() -> None:
    invite = {
        "type": "m.room.member",
        "state_key": "@ada:x",
        "sender": "@bob:x",
        "content": {"membership": "invite", "is_direct": True},
    }
    said = {"event_id": "$1", "sender": "@bob:x", "type": "m.room.message", "content": {"body": "hi", "msgtype": "m.text"}}
    timeline = {"events": [said], "limited": True, "prev_batch": "p"}
    found = parse_sync(
        {
            "next_batch": "n",
            "account_data": {"events": [{"type": "m.direct", "content": {"@bob:x": ["!d:x", 1]}}]},
            "rooms": {
                "join": {"!j:x": {"timeline": timeline, "state": {"events": []}, "summary": {"m.joined_member_count": 2}}},
                "invite": {"!i:x": {"invite_state": {"events": [invite]}}},
                "leave": {"!l:x": {}},
            },
        }
    )
    assert found.next_batch == "n"
    assert found.direct == {"@bob:x": ("!d:x",)}
    joined = found.joined[0]
    assert (joined.room_id, joined.timeline.limited, joined.timeline.prev_batch, joined.joined_members) == ("!j:x", True, "p", 2)
    assert [event.event_id for event in joined.timeline.events] == ["$1"]
    mine = found.invited[0].invite_of("@ada:x")
    assert mine is not None
    assert (mine.sender, mine.direct) == ("@bob:x", True)
    assert found.left[0].room_id == "!l:x"
    assert parse_sync({"next_batch": "n"}).direct is None


@given(JSON, JSON, JSON)
def test_a_malformed_sync_is_refused_or_read_and_never_worse(room: Any, rooms: Any, account_data: Any) -> None:
    for shape in ({"join": {"!r:x": room}}, {"invite": {"!r:x": room}}, {"leave": {"!r:x": room}}, rooms):
        parse_sync({"next_batch": "n", "rooms": shape, "account_data": account_data})
        parse_sync({"next_batch": "n", "rooms": {"join": {"!r:x": {"timeline": room, "state": rooms, "summary": room}}}})
    with pytest.raises(MatrixUnreachable):
        parse_sync({"rooms": rooms})


def test_a_page_of_messages_says_where_it_ends() -> None:
    page = parse_messages({"chunk": [{"event_id": "$1", "sender": "@a:x", "type": "m.x", "content": {}}], "end": "t"})
    assert (len(page.events), page.end) == (1, "t")
    assert parse_messages({"chunk": []}).end is None
    with pytest.raises(MatrixUnreachable):
        parse_messages([])
