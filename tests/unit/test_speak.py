"""The rule of speaking: whose turn it is, and how long another waits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind_body.errors import MatrixError, MatrixLimited, MatrixRefused, MatrixUnreachable
from mind_body.mind.records import Said, SaidKind, SaidState
from mind_body.mouth.speak import (
    LIMIT_MAX_MS,
    LIMITED,
    MEMORY_MS,
    SAME_LIMIT_MS,
    GiveUp,
    Wait,
    may_follow,
    must_look_first,
    pick_due,
    plan_setback,
)
from tests.builders import NOW, make_new_said, make_said

HOUR = 3_600_000


def row(said_id: str, **columns: object) -> Said:
    kind = columns.pop("kind", SaidKind.SAY)
    assert isinstance(kind, SaidKind)
    return make_said(make_new_said(said_id, f"!{said_id}", kind), **columns)


def ids(*rows: Said, busy: set[str] | None = None) -> list[str]:
    return [row.id for row in pick_due(rows, busy or set(), NOW).rows]


def test_every_room_that_need_not_wait_is_due_replies_first() -> None:
    notice, reply, later = row("n", kind=SaidKind.NOTICE), row("r", place=2), row("l", not_before=NOW + 5)
    assert ids(notice, reply, later) == ["r", "n"]
    assert pick_due([notice, reply, later], set(), NOW).next_at == NOW + 5
    assert ids(notice, reply, busy={"!r"}) == ["n"]


def test_while_a_reply_is_limited_no_notice_takes_its_place() -> None:
    limited = row("r", not_before=NOW + 5, reason=LIMITED)
    assert ids(row("n", kind=SaidKind.NOTICE), limited) == []
    assert ids(row("n", kind=SaidKind.NOTICE), row("r", not_before=NOW + 5, reason="away")) == ["n"]
    limited_notice = row("n", kind=SaidKind.NOTICE, reason=LIMITED)
    assert ids(limited_notice, row("r")) == ["r"]
    assert ids(limited_notice, row("r"), busy={"!r"}) == []
    assert ids(limited_notice, row("r", not_before=NOW + 5, reason="away")) == ["n"]


def test_an_edit_goes_last_and_under_a_limit_after_everything_else() -> None:
    edit, notice, reply = row("e", kind=SaidKind.EDIT), row("n", kind=SaidKind.NOTICE), row("r")
    assert ids(edit, notice, reply) == ["r", "n", "e"]
    assert ids(edit, row("n", kind=SaidKind.NOTICE, reason=LIMITED, not_before=NOW + 5)) == []
    limited_edit = row("e", kind=SaidKind.EDIT, reason=LIMITED)
    assert ids(limited_edit, notice) == ["n"]
    assert ids(limited_edit, row("n", kind=SaidKind.NOTICE, not_before=NOW + 5)) == ["e"]
    assert not may_follow(edit, reply, NOW)


def test_a_limited_edit_leaves_room_for_words() -> None:
    def waits(kind: SaidKind) -> int:
        setback = plan_setback(MatrixLimited("429", 5_000), row("a", kind=kind), NOW, 30_000)
        assert isinstance(setback, Wait)
        return setback.until - NOW

    assert waits(SaidKind.EDIT) - waits(SaidKind.NOTICE) > 9_000
    assert waits(SaidKind.NOTICE) == waits(SaidKind.SAY)


def test_limited_rows_go_one_at_a_time_the_most_refused_first() -> None:
    often, once, fresh = row("a", tries=3, reason=LIMITED), row("b", tries=1, reason=LIMITED), row("c")
    assert ids(often, once, fresh) == ["a", "c"]
    assert ids(often, once, fresh, busy={"!a"}) == ["c"]


def test_a_lead_of_milliseconds_takes_nobodys_turn() -> None:
    once, often = row("a", tries=1, reason=LIMITED), row("b", tries=2, reason=LIMITED, not_before=NOW + 5)
    assert ids(once, often) == []
    assert pick_due([once, often], set(), NOW).next_at == NOW + 5
    later = row("b", tries=2, reason=LIMITED, not_before=NOW + SAME_LIMIT_MS + 1)
    assert ids(once, later) == ["a"], "a room that must wait long holds up no other"


def test_after_a_limited_row_the_next_of_the_room_is_for_the_round_to_decide() -> None:
    assert may_follow(row("a"), row("b"), NOW)
    assert not may_follow(row("a"), row("b", reason=LIMITED), NOW)
    assert not may_follow(row("a", kind=SaidKind.NOTICE), row("b"), NOW)
    assert not may_follow(row("a", not_before=NOW + 1), row("b"), NOW)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([SaidKind.SAY, SaidKind.NOTICE, SaidKind.EDIT]),
            st.integers(-10, 10),
            st.integers(0, 3),
            st.sampled_from(["", LIMITED, "x"]),
        ),
        max_size=6,
    )
)
def test_whoever_waits_is_told_when_or_waits_for_one_that_is(drawn: list[tuple[SaidKind, int, int, str]]) -> None:
    rows = [
        row(str(n), kind=kind, not_before=NOW + wait, tries=tries, reason=reason)
        for n, (kind, wait, tries, reason) in enumerate(drawn)
    ]
    due = pick_due(rows, set(), NOW)
    assert not rows or due.rows or due.next_at is not None
    assert all(found.not_before <= NOW for found in due.rows)
    assert due.next_at is None or due.next_at > NOW


@pytest.mark.parametrize(
    ("columns", "looks"),
    [
        ({"state": SaidState.QUEUED}, False),
        ({"state": SaidState.ATTEMPTED, "attempted_at": NOW - HOUR, "device_id": "D"}, False),
        ({"state": SaidState.ATTEMPTED, "attempted_at": NOW - MEMORY_MS - 1, "device_id": "D"}, True),
        ({"state": SaidState.ATTEMPTED, "attempted_at": NOW - HOUR, "device_id": "E"}, True),
        ({"state": SaidState.ATTEMPTED, "attempted_at": NOW - HOUR, "device_id": None}, True),
        ({"state": SaidState.ATTEMPTED, "attempted_at": NOW + HOUR, "device_id": "D"}, True),
    ],
)
def test_history_is_read_where_the_homeserver_may_have_forgotten(columns: dict[str, object], looks: bool) -> None:
    assert must_look_first(row("a", **columns), "D", NOW) is looks


@given(st.integers(0, 10**12), st.integers(0, 10**6))
def test_a_told_wait_is_kept_and_bounded(told: int, tries: int) -> None:
    setback = plan_setback(MatrixLimited("429", told), row("a", tries=tries), NOW, 30_000)
    assert isinstance(setback, Wait)
    assert min(told, LIMIT_MAX_MS) <= setback.until - NOW <= LIMIT_MAX_MS


@given(st.integers(0, 10**6))
def test_a_back_off_is_bounded_and_never_none(tries: int) -> None:
    for error in (MatrixUnreachable("away"), MatrixRefused("full", "M_RESOURCE_LIMIT_EXCEEDED")):
        setback = plan_setback(error, row("a", tries=tries), NOW, 30_000)
        assert isinstance(setback, Wait)
        assert 0 < setback.until - NOW <= 30_000


@pytest.mark.parametrize("code", ["M_FORBIDDEN", "M_TOO_LARGE", "M_DUPLICATE_ANNOTATION", "M_BAD_JSON"])
def test_what_sending_again_does_not_change_is_given_up(code: str) -> None:
    error: MatrixError = MatrixRefused("no", code)
    assert plan_setback(error, row("a"), NOW, 30_000) == GiveUp("no")
