"""What her operator has her work towards, as she is told it; and the burn line, which tells what she costs."""

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind_body.clock import now_ms
from mind_body.matrix.outside import clean
from mind_body.mind.asking_records import Campaign
from mind_body.mind.campaigns import close_campaign, open_campaign
from mind_body.mind.records import RunKind
from mind_body.mind.runs import end_run, open_run
from mind_body.persona.burn import Burn, render_burn
from mind_body.persona.campaigns import (
    BYTES_MAX,
    CampaignNews,
    campaign_news,
    fitting_campaigns,
    render_campaign_news,
    with_campaigns,
)
from mind_body.persona.opening import Opened
from tests.builders import NOW, OPERATOR, insert, insert_room, make_campaign
from tests.persona_stage import CONVERSATION, Stage, saying, write_persona
from tests.unit.test_prompt import nasty

slugs = st.sampled_from(["spring", "pond", "a", "b"])
campaign_lists = st.lists(slugs, unique=True).map(lambda found: [make_campaign(slug) for slug in found])


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path, '[people]\noperators = ["@op:example.org"]\n[self]\nenabled = true\n[spend]\nday_usd = 1.0')


def open_one(stage: Stage, slug: str, text: str = "Sow the beds.") -> None:
    with stage.mind.write() as tx:
        assert open_campaign(tx, make_campaign(slug, text=text))


def close_one(stage: Stage, slug: str) -> None:
    with stage.mind.write() as tx:
        assert close_campaign(tx, slug, NOW)


async def talk(stage: Stage, body: str = "hello", **columns: Any) -> str:
    """What she is given for one message."""
    stage.hear(body, **columns)
    conversations = [row["conversation"] for row in stage.rows("SELECT conversation FROM room")]
    await stage.turn(run := stage.grant(*conversations), now=now_ms())
    with stage.mind.write() as tx:
        end_run(tx, run.id, stage.holder, "done", "", NOW)
    return stage.provider.asks[-1].text


async def test_a_session_opens_with_the_campaigns_in_force_and_is_told_of_each_change_once_and_never_rewritten(
    stage: Stage,
) -> None:
    open_one(stage, "spring", "Sow the beds.\n\nWater them.")
    assert "spring" not in await talk(stage)
    open_one(stage, "pond", "Dig the pond.")
    close_one(stage, "spring")
    changed = await talk(stage)
    assert "Your operator has opened a campaign.\npond:\n    Dig the pond." in changed
    assert "Your operator has closed the campaign spring" in changed
    stage.restart()
    assert "campaign" not in await talk(stage)
    asks = stage.provider.asks
    assert len({ask.plan.session_id for ask in asks}) == 1
    assert asks[0].plan.instructions.endswith("\nspring:\n    Sow the beds.\n\n    Water them.")
    for before, after in itertools.pairwise(asks):
        assert after.blocks[: len(before.blocks)] == before.blocks


async def test_the_next_session_opens_with_what_is_in_force_then(stage: Stage) -> None:
    open_one(stage, "spring")
    await talk(stage)
    close_one(stage, "spring")
    open_one(stage, "pond", "Dig the pond.")
    write_persona(stage.home, "You are Ada, and you have changed.")
    stage.restart()
    assert "campaign" not in await talk(stage)
    instructions = stage.provider.asks[-1].plan.instructions
    assert "pond:\n    Dig the pond." in instructions
    assert "spring" not in instructions


async def test_a_change_that_no_answered_turn_has_told_is_told_by_the_next(stage: Stage) -> None:
    await talk(stage)
    open_one(stage, "pond")
    stage.hear("and?")
    run = stage.grant()
    assert isinstance(stage.open(run), Opened)
    stage.bury(run)
    stage.restart()
    assert "opened a campaign" in await talk(stage)


async def test_each_conversation_hears_of_it(stage: Stage) -> None:
    with stage.mind.write() as tx:
        insert_room(tx, "!b:example.org", number=2)
    await talk(stage)
    await talk(stage, room_id="!b:example.org")
    open_one(stage, "pond")
    assert "opened a campaign" in await talk(stage)
    assert "opened a campaign" in await talk(stage, room_id="!b:example.org")


async def test_many_campaigns_have_a_bound_and_the_newest_are_told_while_the_others_stay_open(stage: Stage) -> None:
    for number in range(6):
        open_one(stage, f"c{number}", str(number) * 4000)
    await talk(stage)
    instructions = stage.provider.asks[-1].plan.instructions
    assert [number for number in range(6) if f"c{number}:" in instructions] == [2, 3, 4, 5]
    open_one(stage, "pond", "p" * 4000)
    changed = await talk(stage)
    assert "pond:" in changed
    assert "closed" not in changed, "who is left out is not closed"
    for slug in ("c4", "c5"):
        close_one(stage, slug)
    changed = await talk(stage)
    assert "c1:\n" in changed, "there is room again"
    assert "c0:\n" not in changed


@given(st.lists(st.text(min_size=1, max_size=4000), max_size=8), st.booleans(), st.sampled_from([None, 8192, 200_000]))
def test_what_is_shown_of_campaigns_fits_and_is_the_newest(texts: list[str], small: bool, window: int | None) -> None:
    campaigns = [make_campaign(f"c{number}", text=text) for number, text in enumerate(texts)]
    shown = fitting_campaigns(campaigns, small=small, window_tokens=window)
    assert shown == campaigns[len(campaigns) - len(shown) :]
    assert len(with_campaigns("", shown, small=False).encode("utf-8", "replace")) <= BYTES_MAX + 200 or small
    assert bool(shown) == bool(campaigns) or window == 8192, "one alone always fits"


@pytest.mark.parametrize("named", ["spring", "summer", "never", None])
async def test_work_is_for_a_campaign_only_while_it_is_open_and_is_done_anyway(stage: Stage, named: str | None) -> None:
    open_one(stage, "spring")
    open_one(stage, "summer")
    close_one(stage, "summer")
    (seq,) = stage.hear("please dig", sender=OPERATOR)
    start = {"brief": "Dig.", "asked_in": f"m{seq}", "repo": None, "campaign": named}
    stage.provider.answer = lambda _: {"say": [], "react": [], "start_self_run": start, "tell_self": None}
    await stage.turn(stage.grant())
    (work,) = stage.rows("SELECT * FROM follow_up")
    assert (work["campaign"], work["state"]) == ("spring" if named == "spring" else None, "open")
    noted = "no campaign of that slug is open" in stage.journal.lines[-1][2]["WORK"]
    assert noted == (named in {"summer", "never"})


@given(campaign_lists, st.lists(campaign_lists, max_size=5))
def test_told_change_by_change_a_session_knows_what_is_open(first: list[Campaign], later: list[list[Campaign]]) -> None:
    told = {campaign.slug: True for campaign in first}
    for campaigns in later:
        news = campaign_news(told, campaigns)
        told |= {one.slug: True for one in news.opened} | dict.fromkeys(news.closed, False)
        assert {slug for slug, is_open in told.items() if is_open} == {one.slug for one in campaigns}
        assert campaign_news(told, campaigns) == CampaignNews()


@given(nasty | st.text(max_size=200))
def test_a_campaigns_text_stands_as_it_was_written_and_no_line_of_it_passes_for_one_of_ours(text: str) -> None:
    campaign = make_campaign("pond", text=text)
    for shown in (with_campaigns("", [campaign], small=False), *render_campaign_news(CampaignNews((campaign,)), small=False)):
        _, _, told = shown.partition("\npond:\n")
        lines = told.split("\n")
        assert all(line.startswith("    ") for line in lines if line)
        assert [line.strip() for line in lines] == [line.strip() for line in clean(text).strip().split("\n")]


@given(nasty | st.text(max_size=400))
def test_a_small_model_gets_a_line_and_the_persona_stays_the_last_word(text: str) -> None:
    shown = with_campaigns("You are Ada.", [make_campaign("pond", text=text)], small=True)
    assert shown.endswith("\n\nYou are Ada.")
    assert len(shown.split("\n")) == 3
    assert len(shown) < 300
    assert with_campaigns("You are Ada.", [], small=True) == "You are Ada."


BURN = Burn(2_500_000, 10_000_000, 30_000_000, 100_000_000, 0.5, self_at_work=True)


def test_an_operator_is_told_the_figures_and_nobody_else_is() -> None:
    assert render_burn(BURN, for_operator=True) == (
        "Spent: $2.50 of $10.00 today, $30.00 of $100.00 this month. Heat: 0.5. At work: you and your Self."
    )
    assert render_burn(BURN, for_operator=False) == ""


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_elsewhere_she_is_told_to_be_sparing_without_a_figure_when_less_than_a_fifth_is_left(spent: int, cap: int) -> None:
    line = render_burn(replace(BURN, spent_day=spent, cap_day=cap), for_operator=False)
    assert bool(line) == (5 * (cap - spent) < cap)
    assert not any(character.isdigit() for character in line)


async def test_in_an_operators_direct_conversation_the_burn_line_stands_in_every_turn_and_never_in_the_system_part(
    stage: Stage,
) -> None:
    direct = "!dm:example.org"
    with stage.mind.write() as tx:
        insert_room(tx, direct, number=2, direct=1, conversation=f"direct:{direct}")
        for user in (OPERATOR, "@ada:example.org"):
            insert(tx, "member", room_id=direct, user_id=user, membership="join")
    stage.provider.micro_usd_per_token = 10
    stage.provider.answer = lambda _: saying("Yes.", room="r2")
    first = await talk(stage, sender=OPERATOR, room_id=direct)
    assert "# What you cost\nSpent: $0.00 of $1.00 today, $0.00 of $100.00 this month. Heat: 1. At work: you alone." in first
    with stage.mind.write() as tx:
        open_run(tx, RunKind.SELF_RUN, [CONVERSATION], "request", "a test", NOW)
    second = await talk(stage, "x" * 330_000, sender=OPERATOR, room_id=direct)
    assert "At work: you and your Self." in second
    assert "Spent: $0.00 " not in second
    stage.provider.answer = lambda _: saying("Yes.")
    elsewhere = await talk(stage)
    assert "# What you cost\nLittle is left" in elsewhere
    assert "$" not in elsewhere
    assert "$" not in json.dumps([ask.plan.instructions for ask in stage.provider.asks])


@pytest.mark.parametrize("other", ["@eve:example.org", "@op2:example.org"])
async def test_no_figure_is_told_where_somebody_else_reads_along(stage: Stage, other: str) -> None:
    direct = "!dm:example.org"
    with stage.mind.write() as tx:
        insert_room(tx, direct, number=2, direct=1, conversation=f"direct:{direct}")
        for user in (OPERATOR, other, "@ada:example.org"):
            insert(tx, "member", room_id=direct, user_id=user, membership="join")
    assert "Spent" not in await talk(stage, sender=OPERATOR, room_id=direct)
    assert "Spent" not in await talk(stage, sender=OPERATOR)
