"""The rule of hearing, over the real store: what becomes mail, and that every way of cutting a timeline gives the same rows."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mind_body.matrix.wire import parse_messages, parse_sync
from mind_body.mind.changes import KnownPeople, NewHeard
from mind_body.mind.hearing import expire_context, mark_receipt, read_gap, read_gaps, read_receipts_due
from mind_body.mind.records import Membership, Room, Standing
from mind_body.mind.rooms import read_position, read_room, read_rooms
from mind_body.mind.store import Mind
from mind_body.mouth.gap import Caps
from mind_body.mouth.hear import Listener, hear_events
from mind_body.mouth.room import Era, decline_reason, new_room
from mind_body.mouth.take_in import TakeIn, Taken
from mind_body.mouth.waits import FIRST_S, MOST_S, wait_s
from mind_body.settings import PeopleConfig
from tests.builders import NOW, insert, make_config, make_mind
from tests.examples import share

HER, BOB, ROOM = "@ada:example.org", "@bob:example.org", "!room:example.org"
CAPS = Caps(1000, 0)
Json = dict[str, Any]


def message(number: int | str, body: str = "ada?", *, sender: str = BOB, relates: Json | None = None, **content: Any) -> Json:
    relation = {"m.relates_to": relates} if relates else {}
    return event(number, "m.room.message", {"msgtype": "m.text", "body": body, **relation, **content}, sender)


def edit(number: int | str, target: str, body: str, *, sender: str = BOB) -> Json:
    made = message(number, f"* {body}", sender=sender, relates={"rel_type": "m.replace", "event_id": target})
    made["content"]["m.new_content"] = {"msgtype": "m.text", "body": body}
    return made


def event(number: int | str, kind: str, content: Json, sender: str = BOB, **more: Any) -> Json:
    return {"event_id": f"${number}", "type": kind, "sender": sender, "origin_server_ts": NOW, "content": content, **more}


def member(number: int | str, user: str, membership: str, sender: str | None = None, **content: Any) -> Json:
    return event(number, "m.room.member", {"membership": membership, **content}, sender or user, state_key=user)


def timeline(events: list[Json], *, limited: bool = False, prev: str = "p", **summary: int) -> Json:
    return {
        "timeline": {"events": events, "limited": limited, "prev_batch": prev},
        "summary": {f"m.{key}_member_count": value for key, value in summary.items()},
    }


def take(mind: Mind, since: str | None, *, invite: Json | None = None, joined: Json | None = None, **more: Any) -> Taken:
    rooms = {"join": {ROOM: joined} if joined else {}, "invite": {ROOM: invite} if invite else {}, **more.pop("rooms", {})}
    sync = parse_sync({"next_batch": more.pop("next_batch", "s1"), "rooms": rooms, **more})
    with mind.write() as tx:
        return TakeIn(tx, HER, make_config(**more.get("config", {})), NOW).sync(sync, since)


def invite_state(*, direct: bool = True) -> Json:
    return {"invite_state": {"events": [{**member(0, HER, "invite", BOB, is_direct=direct)}]}}


def bodies(mind: Mind, standing: str) -> list[str]:
    with mind.read() as tx:
        return [row["body"] for row in tx.execute("SELECT body FROM heard WHERE standing = ? ORDER BY seq", (standing,))]


def the_room(mind: Mind) -> Room:
    with mind.read() as tx:
        room = read_room(tx, ROOM)
    assert room is not None
    return room


@pytest.fixture
def mind(tmp_path: Path) -> Mind:
    return make_mind(tmp_path)


def hear(events: list[Json], *, era: Era = Era.LIVE, room: Room | None = None, **people: Any) -> list[tuple[Standing, str]]:
    page = parse_messages({"chunk": events})
    listener = Listener(HER, PeopleConfig(**people), KnownPeople({HER: "Ada"}, frozenset({"$hers"})))
    hearing = hear_events(page.events, room or new_room(ROOM, 1, Membership.JOINED), listener, era=era)
    return [(change.standing, change.reason) for change in hearing.changes if isinstance(change, NewHeard)]


DIRECT = replace(new_room(ROOM, 1, Membership.JOINED), direct=True)


@pytest.mark.parametrize(
    ("what", "how", "standing"),
    [
        (message(1, body="hello ada"), {}, Standing.MAIL),
        (message(1, body="hello all"), {}, Standing.CONTEXT),
        (message(1, body="hello all"), {"room": DIRECT}, Standing.MAIL),
        (message(1, body="hello ada"), {"era": Era.HISTORY}, Standing.CONTEXT),
        (message(1, body="hello all"), {"era": Era.INVITED}, Standing.MAIL),
        (message(1, body="hello all"), {"era": Era.INVITED, "bots": [BOB]}, Standing.CONTEXT),
        (message(1, body="hello ada"), {"bots": [BOB]}, Standing.MAIL),
        (message(1, msgtype="m.notice"), {"room": DIRECT}, Standing.CONTEXT),
        (message(1), {"may_address": ["@eve:example.org"]}, Standing.CONTEXT),
        (message(1), {"may_address": [], "operators": ["@*:example.org"]}, Standing.MAIL),
        (message(1), {"may_address": ["@BOB:example.org"]}, Standing.CONTEXT),
        (message(1), {"rooms": ["!other:*"]}, Standing.CONTEXT),
        (message(1, body="yes", relates={"m.in_reply_to": {"event_id": "$hers"}}), {}, Standing.MAIL),
        (message(1, body="yes", relates={"m.in_reply_to": {"event_id": "$other"}}), {}, Standing.CONTEXT),
        (message(1, body="x", relates={"rel_type": "m.thread", "event_id": "$hers"}), {}, Standing.MAIL),
    ],
)
def test_each_message_is_mail_or_context_with_a_reason(what: Json, how: Json, standing: Standing) -> None:
    ((found, reason),) = hear([what], **how)
    assert found is standing
    assert reason


def test_her_own_messages_are_not_heard_and_ids_are_compared_exactly() -> None:
    assert hear([message(1, sender=HER)], room=DIRECT) == []
    assert len(hear([message(1, sender="@Ada:example.org")], room=DIRECT)) == 1


def test_her_own_membership_tells_how_what_follows_is_heard() -> None:
    events = [
        message(1, body="ada, before"),
        member(2, HER, "invite", BOB),
        message(3, body="welcome"),
        member(4, HER, "join"),
        message(5, body="nobody is meant"),
        message(6, body="ada!"),
        member(7, HER, "leave"),
        message(8, body="ada, gone?"),
    ]
    found = [standing for standing, _ in hear(events, era=Era.HISTORY)]
    assert found == [Standing.CONTEXT, Standing.MAIL, Standing.CONTEXT, Standing.MAIL, Standing.CONTEXT]


def test_the_first_sync_makes_no_mail_even_where_it_shows_her_invite(mind: Mind) -> None:
    events = [member(1, HER, "invite", BOB, is_direct=True), message(2), member(3, HER, "join"), message(4)]
    take(mind, None, joined=timeline(events, limited=True))
    assert bodies(mind, "mail") == []
    assert len(bodies(mind, "context")) == 2
    with mind.read() as tx:
        assert read_gaps(tx) == []
        assert read_position(tx) == "s1"


def test_an_invite_in_the_first_sync_is_kept_and_what_follows_it_is_mail(mind: Mind) -> None:
    assert [room.direct for room in take(mind, None, invite=invite_state()).invites] == [True]
    assert the_room(mind).membership is Membership.INVITED
    events = [message(0, body="old"), member(1, HER, "invite", BOB, is_direct=True), message(2), member(3, HER, "join"), message(4)]
    take(mind, "s1", joined=timeline(events, limited=True, joined=2, invited=0))
    assert bodies(mind, "mail") == ["ada?", "ada?"]
    assert bodies(mind, "context") == ["old"]
    assert the_room(mind).conversation == f"direct:{ROOM}"


def test_a_dm_with_a_third_member_is_a_room_for_ever_and_its_session_ends(mind: Mind) -> None:
    take(mind, None, joined=timeline([], joined=2, invited=0))
    direct = {"account_data": {"events": [{"type": "m.direct", "content": {BOB: [ROOM]}}]}}
    taken = take(mind, "s1", **direct)
    assert the_room(mind).conversation == f"direct:{ROOM}"
    assert taken.for_heartbeat, "a question may have waited for a direct room"
    with mind.write() as tx:
        texts = dict.fromkeys(
            ("provider", "model", "instructions", "instructions_digest", "schema_json", "schema_digest", "rehydration"), ""
        )
        insert(tx, "session", id="s", conversation=f"direct:{ROOM}", opened_at=NOW, last_used_at=NOW, **texts)
    assert take(mind, "s2", joined=timeline([member(9, "@eve:example.org", "join")], joined=3, invited=0)).widened
    take(mind, "s3", joined=timeline([member(10, "@eve:example.org", "leave")], joined=2, invited=0), **direct)
    assert the_room(mind).conversation == f"room:{ROOM}"
    with mind.read() as tx:
        assert tx.execute("SELECT ended_at FROM session").fetchone()["ended_at"] == NOW


def test_public_rooms_and_listed_ones_share_one_conversation(mind: Mind) -> None:
    public = event(1, "m.room.join_rules", {"join_rule": "public"}, state_key="")
    take(mind, None, joined=timeline([public]))
    assert the_room(mind).conversation == "open"
    closed = event(2, "m.room.join_rules", {"join_rule": "invite"}, state_key="")
    take(mind, "s1", joined=timeline([closed]))
    assert the_room(mind).conversation == f"room:{ROOM}"
    with mind.write() as tx:
        TakeIn(tx, HER, make_config(people={"open_rooms": ["!r*"]}), NOW).conversations()
    assert the_room(mind).conversation == "open"


def test_a_room_that_goes_on_hands_on_that_it_was_a_dm(mind: Mind) -> None:
    take(mind, None, invite=invite_state())
    tombstone = event(5, "m.room.tombstone", {"replacement_room": "!next:example.org"}, state_key="")
    take(mind, "s1", joined=timeline([member(1, HER, "join"), tombstone], joined=2))
    new = timeline([member(2, HER, "join"), message(3, body="here now")], joined=2)
    take(mind, "s2", rooms={"join": {"!next:example.org": new}})
    assert bodies(mind, "mail") == ["here now"]
    with mind.read() as tx:
        assert [room.handle for room in read_rooms(tx)] == ["r1", "r2"]


def test_a_lost_mind_learns_from_her_own_join_that_a_room_was_a_dm(mind: Mind) -> None:
    was = {"prev_content": {"membership": "invite", "is_direct": True}}
    take(mind, None, joined=timeline([{**member(1, HER, "join"), "unsigned": was}], joined=2, invited=0))
    assert the_room(mind).conversation == f"direct:{ROOM}"


@pytest.mark.parametrize("used", [False, True])
def test_edits_and_redactions_reach_only_what_nobody_has_read(mind: Mind, used: bool) -> None:
    take(mind, None, joined=timeline([], joined=2))
    take(mind, "s1", joined=timeline([message(1, body="ada frist"), message(2, body="ada, regretted")]))
    if used:
        with mind.write() as tx:
            tx.execute("UPDATE heard SET state = 'closed'")
    redaction = event(5, "m.room.redaction", {"redacts": "$2"})
    take(mind, "s2", joined=timeline([edit(3, "$1", "first"), edit(4, "$1", "not eve's", sender="@eve:example.org"), redaction]))
    assert bodies(mind, "mail") == (["ada frist", "ada, regretted"] if used else ["first", ""])


def test_a_mention_that_is_edited_in_makes_mail_of_context(mind: Mind) -> None:
    take(mind, None, joined=timeline([]))
    take(mind, "s1", joined=timeline([message(1, body="hello all")]))
    taken = take(mind, "s2", joined=timeline([edit(2, "$1", "hello ada")]))
    assert taken.mail
    assert bodies(mind, "mail") == ["hello ada"]


def test_an_encrypted_room_gets_one_notice_and_history_gets_none(mind: Mind) -> None:
    encryption = event(1, "m.room.encryption", {"algorithm": "m.megolm.v1.aes-sha2"}, state_key="")
    secret = event(2, "m.room.encrypted", {"algorithm": "m.megolm.v1.aes-sha2"})
    assert take(mind, None, joined=timeline([encryption, secret])).encrypted == []
    assert len(take(mind, "s1", joined=timeline([{**secret, "event_id": "$3"}])).encrypted) == 1
    assert take(mind, "s2", joined=timeline([{**secret, "event_id": "$4"}])).encrypted == []


@settings(max_examples=share(0.25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_every_way_of_cutting_a_timeline_gives_all_of_it_in_order_once(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Syncs of any size, limited or not, pages of any size, in any interleaving, each transaction possibly answered twice."""
    mind = make_mind(tmp_path_factory.mktemp("mind"))
    whole = [member("join", HER, "join"), *(message(n, body=f"ada {n}") for n in range(data.draw(st.integers(1, 40))))]
    take(mind, None, joined=timeline(whole[:1], joined=3))
    position, shown_last, done = 1, 1, False
    while not done:
        with mind.read() as tx:
            gap = read_gap(tx, ROOM)
        done = position == len(whole) and gap is None
        if gap is not None and (position == len(whole) or data.draw(st.booleans())):
            start, until = int(gap.cursor), int(gap.until or 0)
            size = data.draw(st.integers(1, 7))
            chunk = whole[max(until, start - size) : start][::-1]
            end = {} if start - size <= until else {"end": str(start - size)}
            with mind.write() as tx:
                TakeIn(tx, HER, make_config(), NOW).page(gap, parse_messages({"chunk": chunk, **end}), CAPS)
        elif position < len(whole):
            upto = data.draw(st.integers(position + 1, len(whole)))
            shown = data.draw(st.integers(0, upto - position))
            # A homeserver may repeat what it has shown before.
            again = data.draw(st.integers(0, min(2, shown_last))) if shown == upto - position else 0
            shown_last = shown
            first = max(upto - shown - again, 1)
            part = timeline(whole[first:upto], limited=shown < upto - position, prev=str(first))
            take(mind, str(position), joined=part, next_batch=str(upto))
            position = upto
    assert bodies(mind, "mail") == [event["content"]["body"] for event in whole[1:]]
    with mind.read() as tx:
        assert tx.execute("SELECT count(*) FROM arrival").fetchone()[0] == 0
    mind.close()


def test_a_gap_beyond_the_cap_is_one_row_that_says_how_many(mind: Mind) -> None:
    take(mind, None, joined=timeline([member("join", HER, "join")]))
    take(mind, "s1", joined=timeline([message(9, body="ada 9")], limited=True, prev="9"))
    page = parse_messages({"chunk": [message(n, body=f"ada {n}") for n in range(8, 2, -1)]})
    with mind.write() as tx:
        gap = read_gap(tx, ROOM)
        assert gap is not None
        TakeIn(tx, HER, make_config(), NOW).page(gap, page, Caps(2, 0))
    assert bodies(mind, "mail") == ["ada 7", "ada 8", "ada 9"]
    (missed,) = bodies(mind, "context")
    assert missed.startswith("4 messages")


def fill(mind: Mind, chunk: list[Json], **end: str) -> None:
    with mind.write() as tx:
        gap = read_gap(tx, ROOM)
        assert gap is not None
        TakeIn(tx, HER, make_config(), NOW).page(gap, parse_messages({"chunk": chunk, **end}), CAPS)


def test_a_gap_ends_at_the_first_event_that_she_knows(mind: Mind) -> None:
    take(mind, None, joined=timeline([message(1, "ada, known")]))
    take(mind, "s1", joined=timeline([message(5, "ada 5")], limited=True))
    fill(mind, [message(4, "ada 4"), message(1, "ada, known"), message(0, "ada, older than anything")], end="more")
    assert bodies(mind, "mail") == ["ada 4", "ada 5"]
    with mind.read() as tx:
        assert read_gap(tx, ROOM) is None


def test_in_a_room_she_has_just_joined_the_gap_ends_at_her_invite_and_what_is_older_is_context(mind: Mind) -> None:
    take(mind, None, invite=invite_state(direct=False))
    take(mind, "s1", joined=timeline([member("join", HER, "join"), message(9, "ada 9")], limited=True))
    with mind.read() as tx:
        gap = read_gap(tx, ROOM)
    # Her invite may be older than the position, so the position is not the gap's end.
    assert gap is not None
    assert gap.until is None
    fill(mind, [message(8, "welcome"), member("invite", HER, "invite", BOB), message(7, "ada, before")], end="more")
    assert bodies(mind, "mail") == ["welcome", "ada 9"]
    assert bodies(mind, "context") == ["ada, before"]


def test_counting_what_was_missed_ends_too(mind: Mind) -> None:
    take(mind, None, joined=timeline([member("join", HER, "join")]))
    take(mind, "s1", joined=timeline([message("x")], limited=True, prev="0"))
    pages = 0
    while True:
        with mind.write() as tx:
            gap = read_gap(tx, ROOM)
            if gap is None:
                break
            pages += 1
            chunk = [message(f"{pages}-{n}") for n in range(10)]
            page = parse_messages({"chunk": chunk, "end": str(pages)})
            TakeIn(tx, HER, make_config(), NOW).page(gap, page, Caps(5, 0))
    assert pages == 6
    assert bodies(mind, "context")[0].startswith("More than 55 messages")


def test_who_may_invite_is_asked_exactly(mind: Mind) -> None:
    room = replace(new_room(ROOM, 1, Membership.INVITED), invited_by=BOB)
    assert decline_reason(room, PeopleConfig()) is None
    assert decline_reason(room, PeopleConfig(may_invite=("@*:other.org",))) == "the inviter is not on may_invite"
    assert decline_reason(room, PeopleConfig(rooms=("!other:*",))) == "the room is not on rooms"
    assert decline_reason(room, PeopleConfig(may_invite=(), rooms=(), operators=(BOB,))) is None


def test_context_expires_and_mail_does_not(mind: Mind) -> None:
    take(mind, None, joined=timeline([message(1)]))
    take(mind, "s1", joined=timeline([message(2)]))
    with mind.write() as tx:
        assert expire_context(tx, NOW) == 0
        assert expire_context(tx, NOW + 1) == 1
    assert (len(bodies(mind, "mail")), len(bodies(mind, "context"))) == (1, 0)


def test_what_was_withdrawn_expires_too_and_no_expiry_reads_the_whole_history(mind: Mind) -> None:
    take(mind, None, joined=timeline([]))
    take(mind, "s1", joined=timeline([message(1), message(2)]))
    with mind.write() as tx:
        tx.execute("UPDATE heard SET state = 'withdrawn', body = '' WHERE event_id = '$1'")
        asked: list[str] = []
        tx.set_trace_callback(asked.append)
        assert expire_context(tx, NOW + 1) >= 1
        tx.set_trace_callback(None)
        plans = [" ".join(map(str, row)) for sql in asked for row in tx.execute(f"EXPLAIN QUERY PLAN {sql}")]
    assert plans
    assert not [plan for plan in plans if "SCAN" in plan]


def test_a_receipt_is_due_for_the_newest_closed_row_until_it_is_given(mind: Mind) -> None:
    take(mind, None, joined=timeline([]))
    take(mind, "s1", joined=timeline([message(1), message(2), message(3)]))
    with mind.write() as tx:
        assert read_receipts_due(tx) == []
        tx.execute("UPDATE heard SET state = 'closed' WHERE event_id IN ('$1', '$2')")
        ((room_id, seq, event_id, _),) = read_receipts_due(tx)
        assert (room_id, event_id) == (ROOM, "$2")
        mark_receipt(tx, room_id, seq)
        assert read_receipts_due(tx) == []


@given(st.integers(0, 10_000), st.floats(0, 1, exclude_max=True))
def test_waits_grow_and_are_bounded(tries: int, chance: float) -> None:
    assert FIRST_S / 2 <= wait_s(tries, chance) <= MOST_S
    assert wait_s(tries + 1, chance) >= wait_s(tries, chance)
