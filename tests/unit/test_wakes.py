"""What the heartbeat reads before it decides, over a real mind: right, and quick however long the history is."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mind_body.mind.asking_records import Pulse
from mind_body.mind.campaigns import open_campaign
from mind_body.mind.changes import NewHeard
from mind_body.mind.claims import read_work_facts
from mind_body.mind.hearing import admit_heard
from mind_body.mind.news import read_news
from mind_body.mind.places import note_spoken, read_places, read_turns_today
from mind_body.mind.pulses import admit_pulse, read_pulse
from mind_body.mind.questions import admit_question, answer_question, read_open_questions, read_question_events
from mind_body.mind.records import Pause, RunKind
from mind_body.mind.records import Standing as RowStanding
from mind_body.mind.runs import end_run, live_run, open_run, set_pause
from mind_body.mind.self_runs import write_progress
from mind_body.mind.store import Mind, Transaction
from mind_body.mind.wake_facts import Standing, Window
from mind_body.mind.wakes import read_standing, read_waiting_mail, read_wake_facts
from mind_body.mind.work_records import Progress
from tests.builders import (
    NOW,
    WINDOW,
    insert,
    insert_heard,
    insert_room,
    insert_run,
    insert_session,
    insert_turn,
    make_campaign,
    make_mind,
    make_question,
)

PERSONA, SELF = RunKind.PERSONA_TURN, RunKind.SELF_RUN
BOB, BOT = "@bob:example.org", "@bot:example.org"


@pytest.fixture
def tx(tmp_path: Path) -> Iterator[Transaction]:
    mind: Mind = make_mind(tmp_path)
    with mind.write() as opened:
        yield opened
    mind.close()


def test_waiting_mail_is_told_by_place_and_by_who_wrote_it_where_she_can_answer(tx: Transaction) -> None:
    insert_room(tx, "!a", conversation="open")
    insert_room(tx, "!b", conversation="open")
    insert_room(tx, "!left", membership="left")
    insert_room(tx, "!invited", membership="invited")
    for room, sender, columns in [
        ("!b", BOT, {"at": 30, "person": 0, "event_id": "$1"}),
        ("!a", BOB, {"at": 90, "event_id": "$2"}),
        ("!a", BOB, {"at": 20, "event_id": "$3"}),
        ("!a", BOB, {"at": 40, "event_id": "$4", "thread": "$t"}),
        ("!a", BOB, {"at": 50, "event_id": "$5", "person": 0}),
        ("!a", BOB, {"standing": "context"}),
        ("!a", BOB, {"state": "closed"}),
        ("!left", BOB, {}),
        ("!invited", BOB, {}),
    ]:
        insert_heard(tx, room, sender=sender, **columns)  # type: ignore[arg-type] # columns of a row
    assert [
        (one.conversation, one.room_id, one.thread, one.sender, one.person, one.count, one.oldest_at, one.newest_at)
        for one in read_waiting_mail(tx)
    ] == [
        ("open", "!b", "", BOT, False, 1, 30, 30),
        ("open", "!a", "", BOB, True, 2, 20, 90),
        ("open", "!a", "$t", BOB, True, 1, 40, 40),
        ("open", "!a", "", BOB, False, 1, 50, 50),
    ]
    change = NewHeard("$6", "!b", BOB, "", "m.text", "", NOW, None, "$t", RowStanding.MAIL, "", person=False)
    admit_heard(tx, [change], NOW)
    assert not read_waiting_mail(tx)[-1].person, "as it was judged when it was heard"
    events = [(one.oldest_event, one.newest_event) for one in read_waiting_mail(tx)]
    assert events == [("$1", "$1"), ("$2", "$3"), ("$4", "$4"), ("$5", "$5"), ("$6", "$6")], (
        "by the order of rows, whatever the clock did"
    )


def test_each_half_has_its_own_pauses_and_runs(tx: Transaction) -> None:
    for pause in (Pause("limited", 5, "a"), Pause("self-limited", 6, "b", 2), Pause("self-fault", 7, "c")):
        set_pause(tx, pause)
    insert_run(tx, id="old")
    insert_run(tx, id="older-clock", ended_at=NOW - 5, opened_at=NOW - 9)
    insert_run(tx, id="work", kind="self_run", ended_at=NOW + 1)
    persona, self_half = read_standing(tx, PERSONA, WINDOW), read_standing(tx, SELF, WINDOW)
    assert persona.pauses == (Pause("limited", 5, "a"),)
    assert self_half.pauses == (Pause("fault", 7, "c"), Pause("limited", 6, "b", 2))
    assert [run.id for run in persona.recent] == ["older-clock", "old"]
    assert (persona.last_act_at, self_half.last_act_at) == (NOW - 5, NOW + 1)
    run = open_run(tx, PERSONA, ["open"], "direct", "", NOW)
    assert read_standing(tx, PERSONA, WINDOW).live == run
    assert read_standing(tx, SELF, WINDOW).live is None


def test_who_has_done_nothing_waits_from_when_she_first_heard_anything(tx: Transaction) -> None:
    assert read_standing(tx, PERSONA, WINDOW).last_act_at is None
    insert_heard(tx, at=7, standing="context")
    insert_heard(tx, at=6)
    assert read_standing(tx, PERSONA, WINDOW).last_act_at == 7, "by row order: the clock was set back since"


def test_both_halves_draw_on_one_purse_by_the_operators_day_and_month(tx: Transaction) -> None:
    insert_session(tx)
    insert_run(tx, id="r")
    for turn, at, cost in [("now", NOW, 1), ("early", WINDOW.day_start, 2), ("yesterday", WINDOW.day_start - 1, 4)]:
        insert_turn(tx, turn, run_id="r", ended_at=at, cost_micro_usd=cost)
    insert_turn(tx, "last-month", run_id="r", ended_at=WINDOW.month_start - 1, cost_micro_usd=8)
    insert_turn(tx, "open", run_id="r", state="opened")
    insert_run(tx, id="done", kind="self_run", cost_micro_usd=16)
    insert_run(tx, id="before", kind="self_run", opened_at=WINDOW.month_start - 1, cost_micro_usd=32)
    insert_run(tx, id="died", kind="self_run", outcome="dead")
    insert_run(tx, id="over-midnight", kind="self_run", opened_at=WINDOW.day_start - 1, cost_micro_usd=256)
    insert_run(tx, id="live", kind="self_run", ended_at=None)
    for run_id, cost in [("done", 9), ("died", 64), ("live", 128)]:
        write_progress(tx, Progress(run_id, "digging", 0, 0, 0, cost, 1, NOW))
    for kind in (PERSONA, SELF):
        standing = read_standing(tx, kind, WINDOW)
        assert (standing.spent_day, standing.spent_month) == (1 + 2 + 16 + 64 + 128, 1 + 2 + 4 + 16 + 64 + 128 + 256)
    ahead = replace(WINDOW, day_end=NOW, month_end=NOW)
    standing = read_standing(tx, SELF, ahead)
    assert (standing.spent_day, standing.spent_month) == (2, 2 + 4 + 256), "what a clock that was ahead has written is of no day"
    tx.execute("UPDATE run SET opened_at = ? WHERE id = 'live'", (WINDOW.day_start - 1,))
    assert read_standing(tx, SELF, WINDOW).spent_day == 1 + 2 + 16 + 64, "yesterday's work does not fill today's cap"


def test_a_cap_is_extended_once_for_every_question_that_was_answered_so_and_for_its_own_window(tx: Transaction) -> None:
    for about, answer in [
        (f"day:{WINDOW.day}", "reopen"),
        (f"month:{WINDOW.month}", "retire"),
        ("day:2027-01-14", "reopen"),
        (f"day:{WINDOW.month}", "reopen"),
    ]:
        admit_question(tx, make_question(f"q-{about}", kind="purse", about=about))
        for _ in range(2):
            answer_question(tx, f"q-{about}", answer, "@op:x", NOW)  # type: ignore[arg-type] # one of the two
    standing = read_standing(tx, PERSONA, WINDOW)
    assert (standing.extensions_day, standing.extensions_month) == (1, 0)


def test_one_word_of_a_person_ends_all_silence(tx: Transaction) -> None:
    insert_room(tx, "!a")

    def beat(cause: str = "beat") -> None:
        run = open_run(tx, PERSONA, ["open"], cause, "", NOW)
        assert end_run(tx, run.id, None, "done", "", NOW)

    def hear(event_id: str, *, person: bool) -> None:
        change = NewHeard(event_id, "!a", BOB, "", "m.text", "", NOW, None, None, RowStanding.CONTEXT, "", person=person)
        admit_heard(tx, [change], NOW)

    beat()
    beat()
    beat("direct")
    assert read_standing(tx, PERSONA, WINDOW).silent_beats == 2
    hear("$bot", person=False)
    beat()
    assert read_standing(tx, PERSONA, WINDOW).silent_beats == 3
    hear("$bob", person=True)
    assert read_standing(tx, PERSONA, WINDOW).silent_beats == 0
    beat()
    assert read_standing(tx, PERSONA, WINDOW).silent_beats == 1


def test_her_home_is_a_room_that_she_is_in_and_her_newest_pulse_counts(tx: Transaction) -> None:
    insert_room(tx, "!home", conversation="open")
    insert_room(tx, "!left", membership="left")
    standing = Standing(silent_beats=3)
    found = read_wake_facts(tx, (), standing, "!home")
    assert (found.home, found.urgency, found.tempo_s, found.standing, found.awaited) == ("open", 0, None, standing, ())
    assert [read_wake_facts(tx, (), standing, room).home for room in ("!left", "!unknown", "")] == [None] * 3
    for pulse in (Pulse("z", 100, 600, NOW), Pulse("a", 900, None, NOW - 5), Pulse("z", 1, 1, NOW + 9)):
        admit_pulse(tx, pulse)
    assert read_pulse(tx) == Pulse("a", 900, None, NOW - 5), "the newest by row; a turn has one"
    found = read_wake_facts(tx, (), standing, "!home")
    assert (found.urgency, found.tempo_s) == (900, None)


HEARD, TURNS = 100_000, 20_000
STEPS_MAX = 10_000
"""Of SQLite's own machine, for one reading. A look at every row that was ever heard takes hundreds of thousands, one at every turn
or run tens of thousands."""


@pytest.fixture(scope="module")
def old_mind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mind]:
    """Years of talk, of which little happened today; five messages wait, and one piece of work."""
    mind = make_mind(tmp_path_factory.mktemp("old"))
    with mind.write() as tx:
        for number in range(10):
            insert_room(tx, f"!{number}")
        tx.executemany(
            "INSERT INTO heard (event_id, room_id, sender, sender_name, kind, body, sent_at, heard_at, thread, standing, reason, "
            "state) VALUES (?, ?, '@b', '', 'm.text', 'hello', 1, ?, ?, ?, '', ?)",
            (
                (f"$e{n}", f"!{n % 10}", n, None if n % 3 else f"$t{n % 300}", "context" if n % 4 else "mail",
                 "closed" if n < HEARD - 20 else "pending")
                for n in range(HEARD)
            ),
        )  # fmt: skip
        for number in range(10):
            note_spoken(tx, f"!{number}", None, HEARD - 100 + number, NOW)
        tx.executemany("INSERT INTO spoke VALUES (?, ?, ?, 1)", ((f"!{n % 10}", f"$t{n}", n) for n in range(HEARD // 5)))
        open_campaign(tx, make_campaign("campaign-0"))
        insert_session(tx)
        tx.executemany(
            "INSERT INTO run (id, kind, conversations, cause, reason, opened_at, ended_at, outcome, follow_up_id, told_turn, "
            "after_seq) VALUES (?, ?, '[]', ?, '', ?, ?, 'done', ?, ?, ?)",
            (
                (f"r{n}", "persona_turn" if n % 10 else "self_run", "direct" if n % 10 != 5 else "beat", n, n,
                 None if n % 10 else f"f{n}", None if n % 10 else "t", n * 5)
                for n in range(TURNS)
            ),
        )  # fmt: skip
        tx.executemany(
            "INSERT INTO follow_up (id, conversation, room_id, asked_by, brief, workspace, campaign, state, opened_at, ended_at) "
            "VALUES (?, 'open', '!0', '@b', 'dig', 'main', ?, 'done', 1, 1)",
            ((f"f{n}", f"campaign-{n % 100}") for n in range(0, TURNS, 10)),
        )
        tx.executemany(
            "INSERT INTO turn (id, run_id, session_id, number, conversation, state, opened_at, ended_at, input, after_seq) "
            "VALUES (?, ?, 's', ?, 'open', 'replied', ?, ?, ?, ?)",
            ((f"t{n}", f"r{n}", n, n, n, "x" * 300, n * 5) for n in range(TURNS)),
        )
        tx.executemany("INSERT INTO turn_heard VALUES (?, ?, 'mail')", ((f"t{n}", n * 5 + 1) for n in range(TURNS)))
        tx.executemany("INSERT INTO turn_place VALUES (?, '', ?, ?)", ((f"!{n % 10}", n * 5, f"t{n}") for n in range(TURNS)))
        tx.executemany("INSERT INTO pulse VALUES (?, 1, NULL, 1)", ((f"t{n}",) for n in range(TURNS)))
        for number in range(300):
            admit_question(tx, make_question(f"q{number}", about=f"work:f{number}"))
            answer_question(tx, f"q{number}", "retire", "@op:x", NOW)
        admit_question(tx, make_question("q", about="campaign:campaign-0"))
        insert(
            tx, "follow_up", id="open", conversation="open", room_id="!0", asked_by=BOB, brief="dig", workspace="main",
            campaign="campaign-0", state="open", opened_at=1,
        )  # fmt: skip
    yield mind
    mind.close()


LATE = type(WINDOW)("2027-01-15", TURNS - 20, "2027-01", TURNS - 400)
READINGS: dict[str, Callable[[Transaction], object]] = {
    "waiting mail": read_waiting_mail,
    "her Persona's standing": lambda tx: read_standing(tx, PERSONA, LATE),
    "her Self's standing": lambda tx: read_standing(tx, SELF, LATE),
    "wake facts": lambda tx: read_wake_facts(tx, (), Standing(), "!1"),
    "work facts": lambda tx: read_work_facts(tx, LATE),
    "places": lambda tx: read_places(tx, [(f"!{n}", "") for n in range(10)]),
    "today's turns": lambda tx: read_turns_today(tx, Window("", TURNS - 20, "", 0)),
    "open questions": read_open_questions,
    "their events": read_question_events,
    "news": lambda tx: read_news(tx, "open", None),
    "the live run": lambda tx: live_run(tx, PERSONA),
}


@pytest.mark.xdist_group("old mind")
@pytest.mark.parametrize("reading", READINGS)
def test_a_long_history_makes_no_look_longer(old_mind: Mind, reading: str) -> None:
    steps = [0]
    asked: list[str] = []

    def count() -> int:
        steps[0] += 1
        return 0

    with old_mind.read() as tx:
        tx.set_trace_callback(asked.append)
        tx.set_progress_handler(count, 10)
        READINGS[reading](tx)
        tx.set_progress_handler(None, 0)
        tx.set_trace_callback(None)
        plans = [str(row["detail"]) for sql in asked for row in tx.execute(f"EXPLAIN QUERY PLAN {sql}")]
    assert steps[0] * 10 <= STEPS_MAX
    assert plans
    assert not [plan for plan in plans if plan.startswith("SCAN") and not _is_short(plan)]


def _is_short(plan: str) -> bool:
    """What is small in itself: an index of what waits, a few rows of a kind, or what a query itself has found."""
    waiting = ("heard_pending_mail", "run_untold", "follow_up_waiting")
    return plan.endswith(waiting) or plan.split()[1] in {"pause", "sqlite_sequence", "found", "chain", "item", "CONSTANT"}
