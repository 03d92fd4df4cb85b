"""Which mail the next turn takes."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from mind_body.matrix.outside import quote
from mind_body.mind.records import Heard, HeardState, Standing
from mind_body.mind.turning import Mail
from mind_body.persona.batch import LOST_MAX, MESSAGES_MAX, Batch, Kills, charged, fitting_context, next_batch

WINDOW = 128_000


def make_mail(seq: int, conversation: str = "open", body: str = "hello", lost: int = 0, *, killed_alone: bool = False) -> Mail:
    heard = Heard(
        seq=seq,
        event_id=f"$e{seq}",
        room_id=f"!{conversation}",
        sender="@bob:example.org",
        sender_name="Bob",
        kind="m.text",
        body=body,
        sent_at=0,
        heard_at=0,
        reply_to=None,
        thread=None,
        standing=Standing.MAIL,
        reason="",
        state=HeardState.PENDING,
        attempts=lost,
        turn_id=None,
    )
    return Mail(heard, conversation, lost, killed_alone)


def seqs(answer: Batch | Kills | None) -> list[int]:
    assert isinstance(answer, Batch)
    return [heard.seq for heard in answer.mail]


some_mail = st.lists(
    st.builds(
        make_mail,
        seq=st.integers(1, 500),
        conversation=st.sampled_from(["open", "direct:!a", "room:!b"]),
        body=st.text(max_size=40) | st.just("é" * 9_000),
        lost=st.integers(0, 4),
        killed_alone=st.booleans(),
    ),
    max_size=80,
    unique_by=lambda mail: mail.heard.seq,
)
some_grant = st.lists(st.sampled_from(["open", "direct:!a", "room:!b"]), unique=True)


@given(some_mail, some_grant, st.integers(2_048, 300_000))
def test_a_batch_begins_with_the_oldest_mail_granted_and_has_no_hole(mail: list[Mail], granted: list[str], window: int) -> None:
    answer = next_batch(mail, granted, window_tokens=window)
    eligible = sorted((one for one in mail if one.conversation in granted), key=lambda one: one.heard.seq)
    if not eligible:
        assert answer is None
        return
    if isinstance(answer, Kills):
        assert answer.mail == eligible[0]
        return
    assert answer is not None
    waiting = [one.heard for one in eligible if one.conversation == eligible[0].conversation]
    assert answer.conversation == eligible[0].conversation
    assert list(answer.mail) == waiting[: len(answer.mail)]
    assert 1 <= len(answer.mail) <= MESSAGES_MAX
    assert len(answer.mail) == 1 or sum(charged(heard.body) for heard in answer.mail) <= window // 4
    assert all(heard.body in {one.heard.body for one in mail} for heard in answer.mail), "mail is never shortened"


@given(some_mail)
def test_what_may_kill_never_travels_with_others_and_dies_only_after_it_was_alone(mail: list[Mail]) -> None:
    answer = next_batch(mail, ["open", "direct:!a", "room:!b"], window_tokens=WINDOW)
    lost = {one.heard.seq: one for one in mail}
    if isinstance(answer, Kills):
        assert answer.mail.lost >= LOST_MAX
        assert answer.mail.killed_alone
    elif isinstance(answer, Batch) and any(lost[heard.seq].lost >= LOST_MAX for heard in answer.mail):
        assert len(answer.mail) == 1


def test_five_messages_during_a_busy_turn_are_one_batch() -> None:
    assert seqs(next_batch([make_mail(n) for n in range(1, 6)], ["open"], window_tokens=WINDOW)) == [1, 2, 3, 4, 5]


def test_a_batch_ends_before_a_message_that_three_turns_were_lost_with() -> None:
    mail = [make_mail(1), make_mail(2, lost=3), make_mail(3)]
    assert seqs(next_batch(mail, ["open"], window_tokens=WINDOW)) == [1]
    assert seqs(next_batch(mail[1:], ["open"], window_tokens=WINDOW)) == [2]


def test_a_message_larger_than_the_budget_travels_whole_and_alone() -> None:
    mail = [make_mail(1, body="x" * 60_000), make_mail(2)]
    answer = next_batch(mail, ["open"], window_tokens=8_192)
    assert isinstance(answer, Batch)
    assert [len(heard.body) for heard in answer.mail] == [60_000]


@given(st.lists(st.text(max_size=3_000) | st.just("\n" * 3_000), max_size=40))
def test_context_is_the_newest_lines_that_fit_whole_and_in_order(bodies: list[str]) -> None:
    lines = [replace(make_mail(seq).heard, body=body, standing=Standing.CONTEXT) for seq, body in enumerate(bodies, start=1)]
    taken = fitting_context(lines)
    assert list(taken) == lines[len(lines) - len(taken) :]
    assert len(taken) <= 20
    assert sum(charged(quote(heard.body)) for heard in taken) <= 16 * 1024
