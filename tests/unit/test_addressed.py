"""W1: who is meant. The table is `cases.md` W1 as bodies; `tests/real` sends the same ones."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind_body.matrix.addressed import Verdict, judge_address
from mind_body.matrix.events import Message
from mind_body.matrix.parse import parse_event
from tests.bodies import W1_BODIES, Body

HER = "@ada:example.org"


def judge(content: dict[str, Any], *, name: str = "Ada", replies_to_her: bool = False) -> Verdict:
    event = parse_event({"event_id": "$1", "sender": "@bob:example.org", "type": "m.room.message", "content": content})
    assert isinstance(event, Message)
    return judge_address(event, user_id=HER, name=name, replies_to_her=replies_to_her)


@pytest.mark.parametrize("case", W1_BODIES, ids=lambda case: case.id)
def test_w1_a_body_is_judged_by_what_a_reader_sees(case: Body) -> None:
    verdict = judge(case.content(HER))
    assert verdict.addressed is case.addressed, verdict
    assert verdict.how == case.how
    assert verdict.reason


def test_w1_a_reply_to_her_counts_even_where_her_name_was_taken_out_of_the_mentions() -> None:
    verdict = judge({"msgtype": "m.text", "body": "and then?", "m.mentions": {}}, replies_to_her=True)
    assert verdict == Verdict(True, "reply", "it replies to a message of hers")


def test_w1_her_name_in_the_quote_that_old_clients_put_before_a_reply_is_not_the_writers() -> None:
    content = {
        "msgtype": "m.text",
        "body": "> <@carol:example.org> ask Ada\n\nno, ask Bob",
        "format": "org.matrix.custom.html",
        "formatted_body": "<mx-reply><blockquote>ask Ada</blockquote></mx-reply>no, ask Bob",
        "m.relates_to": {"m.in_reply_to": {"event_id": "$0"}},
    }
    assert not judge(content).addressed
    del content["formatted_body"]
    assert not judge(content).addressed


def test_without_a_display_name_she_goes_by_the_local_part_of_her_id() -> None:
    assert judge({"msgtype": "m.text", "body": "ada?"}, name="").how == "name"


def test_a_name_of_several_words_with_signs_in_it_is_found_as_it_is_typed() -> None:
    assert judge({"msgtype": "m.text", "body": "what do you say, ada (c++)  bot?"}, name="Ada (C++) Bot").addressed


@given(st.text(max_size=200), st.text(max_size=200) | st.none(), st.text(max_size=12))
def test_judging_is_total(body: str, html: str | None, name: str) -> None:
    content = {"msgtype": "m.text", "body": body, "format": "org.matrix.custom.html", "formatted_body": html}
    assert judge(content, name=name).reason


@given(st.text(alphabet="abc xyz", max_size=30), st.text(alphabet="abc xyz", max_size=30))
def test_her_name_between_spaces_is_always_found(before: str, after: str) -> None:
    assert judge({"msgtype": "m.text", "body": f"{before} Ada {after}"}).addressed


@given(st.text(alphabet="abcdefghijklmnop", min_size=1, max_size=5), st.booleans())
def test_her_name_inside_a_longer_word_is_never_found(letters: str, before: bool) -> None:
    word = f"{letters}ada" if before else f"ada{letters}"
    assert not judge({"msgtype": "m.text", "body": f"so {word} it is"}).addressed


@given(st.frozensets(st.sampled_from([HER, "@Ada:example.org", "@ada:example.com", "@bob:example.org"])), st.booleans())
def test_w1_mentions_decide_alone_when_present(user_ids: frozenset[str], named: bool) -> None:
    content = {"msgtype": "m.text", "body": "Ada!" if named else "hi", "m.mentions": {"user_ids": sorted(user_ids)}}
    assert judge(content).addressed is (HER in user_ids)


@pytest.mark.parametrize("scrap", ["<!--", "<a", "<a b", "<a href='", "</", "<blockquote>", "`", "@a:", "a.", "ada ", "http", "&#"])
def test_a_hostile_message_costs_no_more_than_its_length(scrap: str) -> None:
    flood = scrap * (60_000 // len(scrap))
    started = time.perf_counter()
    judge({"msgtype": "m.text", "body": flood})
    judge({"msgtype": "m.text", "body": "x", "format": "org.matrix.custom.html", "formatted_body": flood})
    # About 0.05 s here; the library parser that this replaced took 20 s.
    assert time.perf_counter() - started < 2
