"""`mind spend`: what a ledger comes to, and what is left of each cap."""

import itertools
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mind_body.clock import day_start, local_day, local_month, next_day, next_month, now_ms, render_local
from mind_body.home import Home
from mind_body.host.secrets import write_secret
from mind_body.lease.grant import Stop
from mind_body.lease.ledger import NewCall, admit_call, save_stop, settle_call
from mind_body.lease.ledger_file import open_ledger
from mind_body.mind.asking_records import Question
from mind_body.mind.questions import admit_question, answer_question
from mind_body.mind.store import open_mind
from mind_body.model.lease_lines import Settle, Tokens
from tests.homes import call, make_home

ZONE = "Asia/Kathmandu"
"""Quarters of an hour away from UTC: a day that is taken by UTC shows."""
_serial = itertools.count(1)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = make_home(tmp_path, "ada", "bea", spend={"day_usd": 2.0, "conversation_day_usd": 0.5})
    made.config_file.write_text(f'time_zone = "{ZONE}"\n[spend]\nday_usd = 3.0\n')
    return made


def costs(
    home: Home, mind: str, ceiling: int, cost: int | None = None, *, conversation: str = "open", at: int | None = None
) -> None:
    """A call of 1,000 tokens, of which 700 were cached and 100 answered; not settled without a cost."""
    at = at or now_ms()
    new = NewCall(
        mind,
        f"call-{next(_serial)}",
        "persona",
        "r",
        conversation,
        "c1",
        "m",
        ceiling,
        local_day(at, ZONE),
        local_month(at, ZONE),
        at,
    )
    with closing(open_ledger(home.ledger, begin=True)) as ledger, ledger.write() as tx:
        admit_call(tx, new)
        if cost is not None:
            usage = {"m": Tokens(uncached=200, cache_read=700, output=100)}
            settle_call(tx, mind, Settle(call=new.id, cost_micro_usd=cost, usage=usage), at)


def shown(home: Home, *words: str) -> Any:
    told = call(home, "spend", *words, "--json")
    assert told.exit_code == 0, told.output
    return json.loads(told.stdout)


def cap(told: Any, mind: str | None, window: str, conversation: str | None = None) -> Any:
    (one,) = [one for one in told["caps"] if (one["mind"], one["window"], one["conversation"]) == (mind, window, conversation)]
    return one


def test_a_host_without_a_ledger_says_so(home: Home) -> None:
    told = call(home, "spend")
    assert (told.exit_code, "the lease keeps the ledger, and has made none yet" in told.stdout) == (0, True)
    assert shown(home)["ledger"] is False
    assert not home.ledger.parent.exists(), "looking makes none"


def test_what_was_spent_is_told_by_day_mind_model_and_conversation(home: Home) -> None:
    day = local_day(now_ms(), ZONE)
    costs(home, "ada", 400_000, 100_000)
    costs(home, "ada", 400_000, conversation="direct:!a:x")
    costs(home, "bea", 50_000, 20_000)
    told = shown(home)
    assert (told["time_zone"], told["by"], told["ledger"]) == (ZONE, "day", True)
    (row,) = told["rows"]
    assert row == {
        "what": day, "mind": None, "calls": 2, "input_tokens": 1800, "cached_tokens": 1400, "output_tokens": 200,
        "cost_micro_usd": 120_000, "unsettled_calls": 1, "reserved_micro_usd": 400_000,
    }  # fmt: skip
    assert [(one["what"], one["mind"]) for one in shown(home, "--by", "mind")["rows"]] == [("ada", "ada"), ("bea", "bea")]
    assert [one["what"] for one in shown(home, "--by", "model")["rows"]] == ["m"]
    found = [(one["mind"], one["what"], one["calls"]) for one in shown(home, "--by", "conversation")["rows"]]
    assert sorted(found) == [("ada", "direct:!a:x", 0), ("ada", "open", 1), ("bea", "open", 1)]


def test_several_minds_that_are_named_are_summed_and_nobody_else_is(home: Home) -> None:
    for mind in ("ada", "bea", "eve"):
        costs(home, mind, 10, 10)
    assert [one["calls"] for one in shown(home, "ada", "bea")["rows"]] == [2]
    assert [one["calls"] for one in shown(home, "ada", "--by", "model")["rows"]] == [1]
    assert {one["mind"] for one in shown(home, "ada")["caps"]} == {"ada", None}
    assert call(home, "spend", "zoe").exit_code == 78


def test_what_is_left_counts_a_reservation_whole_and_opens_at_the_operators_midnight(home: Home) -> None:
    now = now_ms()
    costs(home, "ada", 400_000, 100_000)
    costs(home, "ada", 600_000)
    told = shown(home)
    mine = cap(told, "ada", local_day(now, ZONE))
    assert (mine["committed_micro_usd"], mine["cap_micro_usd"], mine["left_micro_usd"]) == (700_000, 2_000_000, 1_300_000)
    assert mine["opens_at"] == next_day(now, ZONE)
    assert cap(told, "ada", local_month(now, ZONE))["opens_at"] == next_month(now, ZONE)
    host = cap(told, None, local_day(now, ZONE))
    assert (host["committed_micro_usd"], host["cap_micro_usd"]) == (700_000, 3_000_000)
    talk = cap(told, "ada", local_day(now, ZONE), "open")
    assert (talk["cap_micro_usd"], talk["left_micro_usd"]) == (500_000, 0)
    assert cap(told, "bea", local_day(now, ZONE))["committed_micro_usd"] == 0


def test_what_was_spent_before_the_operators_midnight_is_not_of_today(home: Home) -> None:
    midnight = day_start(now_ms(), ZONE)
    costs(home, "ada", 10, 10, at=midnight - 1)
    costs(home, "ada", 500, 500, at=midnight)
    told = shown(home, "--since", local_day(midnight - 1, ZONE))
    assert [one["cost_micro_usd"] for one in told["rows"]] == [10, 500]
    assert cap(told, "ada", local_day(midnight, ZONE))["committed_micro_usd"] == 500
    assert [one["cost_micro_usd"] for one in shown(home, "--since", local_day(midnight, ZONE))["rows"]] == [500]
    assert shown(home, "--since", "2999-01-01")["rows"] == []
    assert call(home, "spend", "--since", "yesterday").exit_code == 2


def test_a_cap_that_an_operator_allowed_once_more_is_twice_as_high(home: Home) -> None:
    costs(home, "ada", 10, 10)
    day = local_day(now_ms(), ZONE)
    with closing(open_mind(home.mind_db("ada"))) as mind, mind.write() as tx:
        admit_question(tx, Question("q", "purse", f"day:{day}", "spent", 1, None, None))
        answer_question(tx, "q", "reopen", "op", 2)
    assert cap(shown(home), "ada", day)["cap_micro_usd"] == 4_000_000
    assert cap(shown(home), "bea", day)["cap_micro_usd"] == 2_000_000


def test_people_read_a_table_the_caps_and_when_they_begin_anew(home: Home) -> None:
    costs(home, "ada", 400_000, 100_000)
    costs(home, "ada", 600_000)
    told = call(home, "spend").stdout
    for words in (
        "$0.10",
        "1, up to $0.60",
        "$0.70",
        "$1.30",
        "all Minds",
        render_local(next_day(now_ms(), ZONE), ZONE)[-5:],
        ZONE,
    ):
        assert words in told
    assert "(in " in told
    assert "Nothing was spent since 2999-01-01." in call(home, "spend", "--since", "2999-01-01").stdout


def test_a_credential_that_waits_is_told_until_its_time_is_over(home: Home) -> None:
    costs(home, "ada", 10, 10)
    with closing(open_ledger(home.ledger)) as ledger, ledger.write() as tx:
        save_stop(tx, "c1", Stop("limited", now_ms() + 3_600_000, "the plan's limit", now_ms()))
        save_stop(tx, "c1", Stop("overloaded", now_ms() - 1, "busy", now_ms()))
        save_stop(tx, "c1", Stop("authentication", None, "refused", now_ms()))
    found = {one["kind"]: one for one in shown(home)["pauses"]}
    assert set(found) == {"limited", "authentication"}
    assert (found["limited"]["minds"], found["authentication"]["until"]) == (["ada"], None)
    assert shown(home, "bea")["pauses"] == []
    told = call(home, "spend").stdout
    write_secret(home.model_key("ada"), "another")
    assert "authentication" not in str(shown(home)["pauses"]), "nobody calls with that key any more"
    assert "The credential of ada is called with again" in told
    assert "until an operator has mended it (authentication): refused" in told


def test_a_ledger_that_cannot_be_read_is_a_sentence(home: Home) -> None:
    home.ledger.parent.mkdir(parents=True)
    home.ledger.write_bytes(b"not a ledger" * 1000)
    told = call(home, "spend")
    assert told.exit_code == 78
    assert len(told.stderr.splitlines()) == 1


def test_a_mind_whose_file_is_broken_hides_no_other(home: Home) -> None:
    costs(home, "ada", 10, 10)
    home.mind_file("bea").write_text("[spend]\nday_usd = -1\n")
    told = call(home, "spend", "--json")
    assert (told.exit_code, "the caps of bea are passed over" in told.stderr) == (0, True)
    assert {one["mind"] for one in json.loads(told.stdout)["caps"]} == {"ada", None}


def test_every_key_is_in_the_help(home: Home) -> None:
    costs(home, "ada", 10, 10)
    told = " ".join(call(home, "spend", "--help").output.split())
    found = shown(home)
    for key in (*found, *found["rows"][0], *found["caps"][0]):
        assert key in told, key
