"""The lease's answers: what a half gets for its question, with the real files and the real ledger."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from mind_body.clock import local_day, next_day, now_ms
from mind_body.home import Home
from mind_body.host.peers import Peer
from mind_body.host.secrets import write_secret
from mind_body.lease.desk import Desk
from mind_body.lease.house import House
from mind_body.lease.ledger_file import Ledger
from mind_body.lease.ledger_read import read_calls, read_difference, read_pauses, read_totals
from mind_body.log import Journal
from mind_body.mind.questions import admit_question, answer_question
from mind_body.mind.store import open_mind
from mind_body.model.lease_lines import (
    Answer,
    Borrow,
    Granted,
    Lent,
    Noted,
    Refused,
    Report,
    Reserve,
    Settle,
    Tokens,
    Trouble,
)
from tests.builders import NOW, OPERATOR, add_mind, hold, make_home, make_question, release

TOKEN = "sk-the-canary-0123456789"
MODEL = '[model]\nprovider = "claude"\ncredential = "api-key"\n'
ADA, EVE, ADAS_SELF = Peer("persona", "ada"), Peer("persona", "eve"), Peer("self", "ada")


class Bank:
    """A desk, its home, and a clock that is set by hand."""

    def __init__(self, root: Path) -> None:
        self.home: Home = make_home(root, "ada", "eve", toml=MODEL)
        for name in ("ada", "eve"):
            write_secret(self.home.model_key(name), TOKEN)
        self.now = NOW
        self.desk = self.open()

    def open(self) -> Desk:
        return Desk(self.home, Journal("lease"), lambda: self.now)

    def ask(self, question: Borrow | Reserve | Settle | Report, peer: Peer = ADA) -> Answer:
        answer, descriptor = self.desk.answer(peer, question)
        assert descriptor is None
        return answer

    def borrow(self, peer: Peer = ADA) -> str | Refused:
        """What the descriptor leads to."""
        answer, descriptor = self.desk.answer(peer, Borrow())
        if isinstance(answer, Refused):
            assert descriptor is None
            return answer
        assert isinstance(answer, Lent)
        assert descriptor is not None
        with os.fdopen(descriptor) as file:
            return f"{answer.kind} {file.read().strip()}"

    def reserve(self, call: str = "c1", ceiling: int = 100, peer: Peer = ADA, **values: Any) -> Answer:
        defaults = {"run": "run-1", "conversation": "open", "model": "m"}
        return self.ask(Reserve(call=call, ceiling_micro_usd=ceiling, **(defaults | values)), peer)

    def settle(self, call: str = "c1", cost: int = 0, peer: Peer = ADA, trouble: Trouble | None = None) -> Answer:
        return self.ask(Settle(call=call, cost_micro_usd=cost, usage={"m": Tokens(output=cost)}, trouble=trouble), peer)

    def fail(self, call: str, peer: Peer = ADA, **trouble: Any) -> None:
        """A call with her credential that comes to nothing for the credential's sake."""
        assert self.reserve(call, peer=peer) == Granted()
        assert self.settle(call, peer=peer, trouble=Trouble(**({"reason": "they said no"} | trouble))) == Noted()

    def configure(self, name: str, toml: str) -> None:
        path = self.home.mind_file(name)
        path.write_text(f'[matrix]\nhomeserver = "http://127.0.0.1:1"\nuser = "@{name}:example.org"\n{MODEL}{toml}\n')


def refused(answer: Answer | str) -> Refused:
    assert isinstance(answer, Refused), answer
    return answer


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[Bank]:
    made = Bank(tmp_path)
    yield made
    made.desk.close()
    if made.home.ledger.exists() and made.home.ledger.read_bytes()[:15] == b"SQLite format 3":
        assert read_difference(made.home.ledger) == 0


# Borrowing


def test_each_half_is_lent_its_own_key_and_the_self_the_personas_where_it_has_none(bank: Bank) -> None:
    bank.configure("ada", '[self]\nenabled = true\ncredential = "oauth-token"')
    assert bank.borrow() == f"api-key {TOKEN}"
    assert bank.borrow(ADAS_SELF) == f"oauth-token {TOKEN}"
    write_secret(bank.home.credentials / "ada.self-key", "sk-selfs-own")
    assert bank.borrow(ADAS_SELF) == "oauth-token sk-selfs-own"
    assert bank.borrow() == f"api-key {TOKEN}"


def test_who_has_no_credential_is_lent_nothing(bank: Bank) -> None:
    answer = refused(bank.borrow(ADAS_SELF))
    assert (answer.kind, answer.until) == ("fault", None)
    assert "nothing to lend" in answer.reason


def test_what_is_lent_can_only_be_read_and_by_each_from_its_beginning(bank: Bank) -> None:
    _, one = bank.desk.answer(ADA, Borrow())
    _, other = bank.desk.answer(ADA, Borrow())
    assert one is not None
    assert other is not None
    assert os.read(one, 5) == os.read(other, 5) == b"sk-th"
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.write(one, b"x")
    assert not os.get_inheritable(one)
    os.close(one)
    os.close(other)


def test_a_held_mind_is_lent_nothing(bank: Bank) -> None:
    hold(bank.home, "ada", "enough")
    assert refused(bank.borrow()) == Refused(kind="held", reason="enough")
    assert isinstance(bank.borrow(EVE), str)


@pytest.mark.parametrize("make", [lambda key: key.chmod(0o644), lambda key: key.unlink(), lambda key: key.write_text("\n")])
def test_a_key_that_cannot_be_used_is_neither_lent_nor_reserved_on(bank: Bank, make: Any) -> None:
    make(bank.home.model_key("ada"))
    for answer in (refused(bank.borrow()), refused(bank.reserve())):
        assert answer.kind == "authentication"
        assert str(bank.home.model_key("ada")) in answer.reason
    write_secret(bank.home.model_key("ada"), TOKEN)
    assert isinstance(bank.borrow(), str)
    assert bank.reserve() == Granted()


# Reserving and settling


def test_a_call_is_reserved_settled_and_never_made_twice(bank: Bank) -> None:
    assert bank.reserve("c1", 900_000) == Granted()
    assert bank.reserve("c1", 900_000) == Granted(), "who asks again had not heard"
    assert refused(bank.reserve("c2", 200_000)).kind == "budget"
    assert bank.settle("c1", 100_000) == Noted()
    assert bank.settle("c1", 800_000) == Noted()
    assert "settled already" in refused(bank.reserve("c1", 1)).reason
    assert bank.reserve("c2", 200_000) == Granted()
    assert bank.reserve("c2", 300_000) == Granted()
    assert refused(bank.reserve("c2", 950_000)).kind == "budget"
    assert [(call.id, call.state, call.reserved_micro_usd, call.cost_micro_usd) for call in read_calls(bank.home.ledger)] == [
        ("c1", "settled", 900_000, 100_000),
        ("c2", "reserved", 300_000, 0),
    ]


def test_a_settlement_for_nothing_that_was_reserved_is_recorded_nowhere_and_told(bank: Bank) -> None:
    with structlog.testing.capture_logs() as lines:
        assert bank.settle("c9", 5) == Noted()
    assert [(line["kind"], line["log_level"]) for line in lines] == [("call.unknown", "warning")]
    assert bank.reserve("c9") == Granted()
    with structlog.testing.capture_logs() as lines:
        assert bank.settle("c9", 5, peer=EVE) == Noted(), "another Mind's"
        assert bank.settle("c8", 0) == Noted()
    assert [line["log_level"] for line in lines] == ["warning", "debug"], "one at nothing is of who got no answer"
    assert [call.state for call in read_calls(bank.home.ledger)] == ["reserved"]


def test_the_brake_and_the_dial_are_read_anew_at_every_call(bank: Bank) -> None:
    assert bank.reserve("c1") == Granted()
    hold(bank.home, "ada", "enough")
    for call in ("c1", "c2"):
        assert refused(bank.reserve(call)) == Refused(kind="held", reason="enough")
    assert bank.settle("c1", 5) == Noted(), "what was made is settled all the same"
    release(bank.home, "ada", base_run_usd=0.001)
    assert refused(bank.reserve("c2", 1000)).kind == "budget"
    release(bank.home, "ada", base_run_usd=2)
    assert bank.reserve("c2", 1000) == Granted()
    (bank.home.control_dir("ada") / "dial.toml").unlink()
    assert refused(bank.reserve("c3")).kind == "held"


def test_caps_hold_for_the_mind_its_conversation_and_the_host_and_a_changed_file_counts_at_once(bank: Bank) -> None:
    bank.configure("ada", "[spend]\nday_usd = 0.5\nconversation_day_usd = 0.2")
    bank.home.config_file.write_text("[spend]\nday_usd = 0.6\n")
    assert bank.reserve("c1", 200_000) == Granted()
    assert "this conversation may cost in a day" in refused(bank.reserve("c2", 1)).reason
    assert bank.reserve("c3", 300_000, conversation="room:x") == refused(bank.reserve("c3", 300_000, conversation="room:x"))
    assert bank.reserve("c3", 150_000, conversation="room:x", peer=ADAS_SELF) == Granted(), "both halves together"
    assert bank.reserve("c4", 150_000, conversation="room:y") == Granted()
    answer = refused(bank.reserve("c5", 1, conversation="room:z"))
    assert "$0.50 of the $0.50 that she may spend in a day" in answer.reason
    assert answer.until == next_day(NOW, "UTC")
    assert bank.reserve("e1", 100_000, peer=EVE) == Granted()
    assert "all Minds together may spend" in refused(bank.reserve("e2", 1, peer=EVE)).reason
    bank.home.config_file.write_text("[spend]\nday_usd = 0.7\n")
    assert bank.reserve("e2", 1, peer=EVE) == Granted()


def test_it_opens_at_the_operators_midnight(bank: Bank) -> None:
    bank.home.config_file.write_text('time_zone = "Europe/Berlin"\n')
    bank.configure("ada", "[spend]\nday_usd = 0.1")
    bank.now = 1_774_741_500_000  # 00:45 in Berlin, in the night in which the clock goes ahead
    assert local_day(bank.now, "Europe/Berlin") == "2026-03-29"
    assert bank.reserve("c1", 100_000) == Granted()
    until = refused(bank.reserve("c2", 1)).until
    assert until == bank.now + 22 * 3_600_000 + 15 * 60_000, "a day of 23 hours"
    bank.now = until - 1
    assert refused(bank.reserve("c2", 1)).until == until
    bank.now = until
    assert bank.reserve("c2", 1) == Granted()
    assert read_totals(bank.home.ledger, "2026-03-29", "2026-03").minds["ada"].day == 100_000


def test_a_restart_forgets_nothing(bank: Bank) -> None:
    bank.configure("ada", "[spend]\nday_usd = 0.1")
    assert bank.reserve("c1", 100_000) == Granted()
    bank.desk.close()
    bank.desk = bank.open()
    assert refused(bank.reserve("c2", 1)).kind == "spend"
    assert bank.reserve("c1", 100_000) == Granted()
    assert bank.settle("c1", 99_999) == Noted()
    assert bank.reserve("c2", 1) == Granted()


def test_an_operators_answer_allows_her_days_cap_once_more(bank: Bank) -> None:
    bank.configure("ada", "[spend]\nday_usd = 0.1")
    assert bank.reserve("c1", 100_000) == Granted()
    assert refused(bank.reserve("c2", 100_000)).kind == "spend"
    mind = open_mind(bank.home.mind_db("ada"))
    with mind.write() as tx:
        about = f"day:{local_day(NOW, 'UTC')}"
        admit_question(tx, make_question("q1", kind="purse", about=about))
        answer_question(tx, "q1", "reopen", OPERATOR, NOW)
    mind.close()
    assert bank.reserve("c2", 100_000) == Granted()
    assert refused(bank.reserve("c3", 1)).kind == "spend"
    bank.now = next_day(NOW, "UTC")
    assert bank.reserve("d1", 100_000) == Granted()
    assert refused(bank.reserve("d2", 1)).kind == "spend", "for that day alone"


def test_a_mind_whose_questions_cannot_be_read_has_no_more_than_its_cap(bank: Bank) -> None:
    bank.configure("ada", "[spend]\nday_usd = 0.1")
    bank.home.mind_db("ada").write_bytes(b"nothing of a database")
    assert bank.reserve("c1", 100_000) == Granted()
    assert refused(bank.reserve("c2", 1)).kind == "spend"


def test_a_configuration_that_cannot_be_read_is_refused_with_its_fault_until_it_can(bank: Bank) -> None:
    bank.configure("ada", "[spend]\nday_usds = 1")
    answer = refused(bank.reserve())
    assert answer.kind == "fault"
    assert "day_usds" in answer.reason
    assert bank.reserve(peer=EVE) == Granted()
    assert refused(bank.reserve(peer=Peer("persona", "bob"))).kind == "held", "a Mind that is not there has no brake"
    bank.configure("ada", "")
    assert bank.reserve() == Granted()


# What is wrong with a credential


def test_a_limit_stops_every_mind_with_that_credential_until_its_reset_and_no_other(bank: Bank) -> None:
    add_mind(bank.home, "bob", MODEL)
    write_secret(bank.home.model_key("bob"), "sk-another")
    with structlog.testing.capture_logs() as lines:
        bank.fail("c1", kind="limited", until=NOW + 60_000, reason="the plan is used up")
    assert [line["event"] for line in lines if line["log_level"] == "warning"] == [
        "No call is made with her credential until 2027-01-15T08:01:00Z: the plan is used up."
    ]
    for peer in (ADA, EVE):
        assert refused(bank.reserve("c2", peer=peer)) == Refused(kind="limited", reason="the plan is used up", until=NOW + 60_000)
    assert bank.reserve("b1", peer=Peer("persona", "bob")) == Granted()
    bank.now += 59_999
    assert refused(bank.reserve("c2")).kind == "limited"
    bank.now += 1
    assert bank.reserve("c2", peer=EVE) == Granted()
    assert read_pauses(bank.home.ledger) == []


def test_a_limit_is_remembered_across_a_restart(bank: Bank) -> None:
    bank.fail("c1", kind="overloaded", until=NOW + 60_000)
    bank.desk.close()
    bank.desk = bank.open()
    assert refused(bank.reserve("c2")).kind == "overloaded"


def test_what_another_server_says_of_the_same_secret_holds_up_nobody_elses(bank: Bank) -> None:
    path = bank.home.mind_file("ada")
    path.write_text(path.read_text() + 'base_url = "https://wrong.example.org/"\n')
    bank.fail("c1", kind="authentication")
    assert refused(bank.reserve("c2")).kind == "authentication"
    assert bank.reserve("c2", peer=EVE) == Granted(), "her key is good where she shows it"


def test_two_halves_without_a_credential_share_nothing(bank: Bank) -> None:
    for name in ("ada", "eve"):
        bank.configure(name, "")
        text = bank.home.mind_file(name).read_text()
        bank.home.mind_file(name).write_text(text.replace("api-key", "none"))
    bank.fail("c1", kind="limited", until=NOW + 60_000)
    assert refused(bank.reserve("c2")).kind == "limited"
    assert bank.reserve("c2", peer=EVE) == Granted()
    assert bank.reserve("c3", peer=ADAS_SELF) == Granted()


def wait_past(at: int) -> None:
    """Milliseconds: what changes a file after that has a later ctime, which nobody can set."""
    while now_ms() <= at:
        pass


def mend_key(bank: Bank) -> None:
    write_secret(bank.home.model_key("ada"), "sk-a-new-one")


def touch_key(bank: Bank) -> None:
    """The same secret again: somebody has paid the bill."""
    write_secret(bank.home.model_key("ada"), TOKEN)


def touch_config(bank: Bank) -> None:
    bank.configure("ada", "# looked at")


def hold_and_release(bank: Bank) -> None:
    hold(bank.home, "ada")
    release(bank.home, "ada")


def turn_dial(bank: Bank) -> None:
    release(bank.home, "ada", heat=0.5)


@pytest.mark.parametrize("mend", [mend_key, touch_key, touch_config, hold_and_release, turn_dial])
@pytest.mark.parametrize("kind", ["authentication", "payment"])
def test_what_an_operator_mends_stops_calls_until_a_file_of_hers_is_changed(bank: Bank, mend: Any, kind: Any) -> None:
    bank.now = now_ms() + 5  # after the files were written
    bank.fail("c1", kind=kind, reason="the key is refused")
    bank.now += 10**10
    assert refused(bank.reserve("c2")) == Refused(kind=kind, reason="the key is refused")
    bank.now -= 10**10
    wait_past(bank.now)
    mend(bank)
    bank.now = now_ms() + 1
    assert bank.reserve("c2") == Granted()


def test_what_was_mended_while_the_failing_call_was_made_is_tried_once_more(bank: Bank) -> None:
    bank.now = now_ms() + 5
    assert bank.reserve("c1") == Granted()
    wait_past(bank.now)
    touch_key(bank)
    bank.now = now_ms() + 1
    bank.settle("c1", trouble=Trouble(kind="authentication", reason="refused"))
    assert bank.reserve("c2") == Granted()
    bank.settle("c2", trouble=Trouble(kind="authentication", reason="refused"))
    assert refused(bank.reserve("c3")).kind == "authentication"


# A ledger that cannot be used


def test_without_a_usable_ledger_every_call_is_refused_with_a_sentence_and_it_goes_on_when_there_is_one(bank: Bank) -> None:
    assert bank.reserve("c1") == Granted()
    aside = bank.home.ledger.with_name("aside")
    bank.home.ledger.rename(aside)
    with structlog.testing.capture_logs() as lines:
        for call in ("c1", "c2"):
            answer = refused(bank.reserve(call))
            assert answer.kind == "fault"
            assert answer.until == NOW + 15_000
            assert "is gone" in answer.reason
        assert refused(bank.settle("c1", 5)).kind == "fault", "it is settled when it can be"
        assert "is gone" in bank.desk.look()
    assert [line["log_level"] for line in lines if line["kind"] == "ledger.fault"] == ["error"], "told once"
    assert isinstance(bank.borrow(), str)
    aside.rename(bank.home.ledger)
    with structlog.testing.capture_logs() as lines:
        assert bank.settle("c1", 5) == Noted()
    assert "ledger.recovered" in [line["kind"] for line in lines]
    assert bank.desk.look() == "$0.000005 today, 0 calls open"


def test_a_corrupt_ledger_refuses_and_the_organ_says_so(bank: Bank) -> None:
    assert bank.reserve("c1") == Granted()
    bank.desk.close()
    bank.home.ledger.write_bytes(b"SQLite, not at all" * 300)
    bank.desk = bank.open()
    assert bank.desk.look().startswith("Refusing every call: ")
    assert "cannot be read as a ledger" in refused(bank.reserve("c2")).reason


def test_a_full_disk_refuses_and_what_was_reserved_still_counts(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    bank.configure("ada", "[spend]\nday_usd = 0.1")
    assert bank.reserve("c1", 100_000) == Granted()
    write = Ledger.write

    def cramped(ledger: Ledger) -> Any:
        ledger._db.execute(f"PRAGMA max_page_count={ledger._db.execute('PRAGMA page_count').fetchone()[0]}")
        return write(ledger)

    monkeypatch.setattr(Ledger, "write", cramped)
    answers = [bank.reserve(f"e{number}", 1, run="x" * 200, conversation="y" * 400, peer=EVE) for number in range(60)]
    full = [answer for answer in answers if isinstance(answer, Refused)]
    assert full
    assert all("database or disk is full" in answer.reason and answer.until == NOW + 15_000 for answer in full)
    assert bank.desk.look().startswith("Refusing every call"), "that it can be read proves nothing"
    monkeypatch.undo()
    assert refused(bank.reserve("c2", 1)).kind == "spend"
    assert bank.reserve("e99", 1, peer=EVE) == Granted()
    assert bank.desk.look().endswith("calls open")


# What is told


def test_figures_of_the_cli_are_recorded_and_a_difference_is_told_once_for_a_run(bank: Bank) -> None:
    with structlog.testing.capture_logs() as lines:
        for ours, theirs in ((100, 101), (1000, 1030), (2000, 2100)):
            assert bank.ask(Report(run="run-1", ours_micro_usd=ours, theirs_micro_usd=theirs)) == Noted()
    told = [line for line in lines if line["kind"] == "cost.apart"]
    assert [(line["COST_MICRO_USD"], line["THEIRS_MICRO_USD"], line["log_level"]) for line in told] == [(1000, 1030, "warning")]
    assert "$0.001030" in told[0]["event"]
    assert "$0.001000" in told[0]["event"]


def test_a_call_that_cost_more_than_it_was_reserved_at_is_told(bank: Bank) -> None:
    bank.reserve("c1", 100)
    with structlog.testing.capture_logs() as lines:
        bank.settle("c1", 101)
    assert [(line["kind"], line["log_level"]) for line in lines] == [("call.settled", "warning")]


def test_each_consequence_is_a_line_and_the_same_one_is_not_told_in_every_breath(bank: Bank) -> None:
    with structlog.testing.capture_logs() as lines:
        for _ in range(3):
            bank.borrow()
        bank.reserve("c1")
        bank.settle("c1", 5)
        for _ in range(3):
            bank.reserve("c2", 2_000_000)
    assert [(line["kind"], line["log_level"]) for line in lines] == [
        ("credential.lent", "info"),
        ("call.reserved", "debug"),
        ("call.settled", "debug"),
        ("call.refused", "warning"),
    ]
    assert {line["MIND"] for line in lines} == {"ada"}
    assert lines[-1]["WHY"] == "budget"
    assert lines[-1]["event"] == f"A call was refused: {lines[-1]['REASON']}."
    bank.now += 60_000
    with structlog.testing.capture_logs() as lines:
        bank.reserve("c2", 2_000_000)
    assert [line["NOT_TOLD"] for line in lines] == [2]


def test_why_a_credential_is_not_lent_is_a_field_of_its_own(bank: Bank) -> None:
    hold(bank.home, "ada", "back on Monday")
    with structlog.testing.capture_logs() as lines:
        bank.borrow()
    assert [(line["kind"], line["WHY"], line["REASON"]) for line in lines] == [("credential.refused", "held", "back on Monday")]


def test_a_secret_is_in_no_line_no_answer_and_no_file_of_the_ledgers(bank: Bank) -> None:
    with structlog.testing.capture_logs() as lines:
        bank.borrow()
        bank.fail("c1", kind="authentication", reason="the key is refused")
        answers = [bank.reserve("c2"), bank.desk.answer(ADA, Settle(call="c1", cost_micro_usd=1))[0]]
    assert TOKEN not in repr(lines) + repr(answers) + repr(vars(bank.desk)) + bank.desk.look()
    found = [path for path in bank.home.ledger.parent.iterdir() if TOKEN.encode() in path.read_bytes()]
    assert not found


def test_at_its_start_it_forgets_what_is_older_than_a_year_and_says_so(bank: Bank) -> None:
    for month in range(16):
        bank.now = NOW - (16 - month) * 31 * 86_400_000
        assert bank.reserve(f"c{month}", 1) == Granted()
    bank.now = NOW
    with structlog.testing.capture_logs() as lines:
        bank.desk.prune()
        bank.desk.prune()
    assert [line["kind"] for line in lines] == ["ledger.pruned"]
    assert len(read_calls(bank.home.ledger)) == 13
    assert bank.reserve("c99", 1) == Granted()


def test_what_nobody_thought_of_about_one_mind_is_refused_and_ends_nothing(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(_: Any, name: str) -> Any:
        raise RuntimeError(TOKEN) if name == "ada" else KeyError

    with monkeypatch.context() as patch:
        patch.setattr(House, "read_mind", read)
        answer = refused(bank.reserve())
    assert (answer.kind, TOKEN in answer.reason) == ("fault", False)
    assert bank.reserve() == Granted()
