"""A Mind at her daily cap is refused before the call, says so once, and goes on at midnight, or when an operator says so.

Every answer of the scripted model costs 40 cents, and so much is reserved for it: what a cap lets through is told in calls.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mind_body.clock import render_utc
from mind_body.matrix.notices import NoticeKey, render_sentence
from tests.real.parts.chat_api import Answer, ChatApi, Request, answer_with, open_chat_api
from tests.real.parts.company import HOST, Company, answer_each, new_mail, react
from tests.real.parts.scene import Scene, bare_environment
from tests.real.parts.synapse import Homeserver
from tests.real.parts.zone import NAME as TOWN
from tests.real.parts.zone import Town

pytestmark = pytest.mark.real

TOKENS = 4_000
"""Most that an answer may have, and what each has: 40 cents."""
PRICES = """
as_of = "2026-11-30"
[[model]]
names = ["scripted"]
input = 0
output = 100
read = 0
write_5m = 0
write_1h = 0
"""
AHEAD_MIN_S, SLOWER = 10.0, 2.5
"""Midnight comes after so long, or so many times what the first answers took."""


def echo(request: Request) -> Answer:
    answer = answer_with(lambda one: answer_each(one, lambda _, mail: f"re: {mail.text}"))(request)
    assert isinstance(answer.body, dict)
    return replace(answer, body={**answer.body, "usage": {"prompt_tokens": 100, "completion_tokens": TOKENS}})


class Household:
    """Minds who may spend so many calls a day, in a town of its own. `paul` is of those who go on soon after a reset."""

    def __init__(self, scene: Scene, api: ChatApi, town: Town) -> None:
        self.scene, self.town = scene, town
        self.company = Company(scene, api)
        self.environment = {"PYTHONTZPATH": str(town.directory)}

    def add(self, name: str, calls: int, operators: tuple[str, ...] = ()) -> None:
        spend = {"day_usd": 0.4 * calls + 0.1}
        self.company.add(name, {"model": {"max_output_tokens": TOKENS}, "spend": spend, "people": {"operators": operators}})

    def up(self) -> None:
        self.scene.up(**self.environment)

    def mind(self, *words: str) -> str:
        """What `mind --home HOME words…` prints."""
        done = subprocess.run(
            [sys.executable, "-m", "mind_body", "--home", str(self.scene.directory), *words],
            env=bare_environment(self.scene.directory) | self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def household(homeserver: Homeserver, tmp_path: Path) -> Iterator[Household]:
    with open_chat_api(echo) as api:
        scene = Scene(homeserver, tmp_path / "home", **HOST, time_zone=TOWN)
        (scene.directory / "prices.toml").write_text(PRICES)
        try:
            yield Household(scene, api, Town(tmp_path / "zones", time.time()))
        finally:
            scene.close()


@pytest.mark.parametrize("change", [Town.jump_forward_at, Town.step_back_before], ids=["forward", "back"])
def test_a_mind_at_her_daily_cap_calls_nobody_says_so_once_and_goes_on_at_midnight(
    household: Household, change: Callable[[Town, int], None]
) -> None:
    scene, company = household.scene, household.company
    household.add("paul", calls=2)
    household.add("emil", calls=9)
    bob, carol, began = company.bob, scene.person("carol"), time.monotonic()
    household.up()
    rooms = company.direct("paul"), company.direct("paul", carol)
    other = company.direct("emil")
    for person, room, text in ((bob, rooms[0], "one"), (carol, rooms[1], "two")):
        person.send(room, text)
        person.wait_text(room, company.ids["paul"])
    ahead_s = max(AHEAD_MIN_S, SLOWER * (time.monotonic() - began))
    # What they ask now waits until she may be asked again: in her last seconds of this day.
    scene.brake("paul", "held")
    for person, room, text in ((bob, rooms[0], "three"), (carol, rooms[1], "four")):
        event = person.send(room, text)
        scene.wait_rows("paul", "it to be heard", "SELECT 1 FROM heard WHERE event_id = ? AND state = 'pending'", event)
    scene.down()
    midnight = int(time.time() + ahead_s)
    change(household.town, midnight)
    scene.brake("paul", "released")
    household.up()
    told = [render_sentence("en", NoticeKey.SPENT, until=midnight * 1000)]
    bob.wait_for("notices", lambda: [company.notices(room, "paul") for room in rooms] == [told, told])
    bob.send(other, "and you?")
    assert bob.wait_text(other, company.ids["emil"]) == ["re: and you?"]
    assert len(company.asked("paul")) == 2, "nothing was asked of the model since"
    refused = company.lines("call.refused", "paul")
    assert {(line["WHY"], line["UNTIL"]) for line in refused} == {("spend", render_utc(midnight * 1000))}
    for person, room, texts in ((bob, rooms[0], ["re: one", "re: three"]), (carol, rooms[1], ["re: two", "re: four"])):
        assert person.wait_text(room, company.ids["paul"], 2) == texts
    assert time.time() >= midnight
    company.wait_settled()
    assert [new_mail(request)[-1].text for request in company.asked("paul")] == ["one", "two", "three", "four"]
    opened = scene.rows("paul", "SELECT opened_at FROM turn WHERE state = 'replied' ORDER BY opened_at")
    assert opened[1]["opened_at"] < midnight * 1000 <= opened[2]["opened_at"]
    assert [company.notices(room, "paul") for room in rooms] == [told, told]


def test_an_operators_word_or_reaction_lets_her_go_on_within_the_day_by_one_cap_more_each(household: Household) -> None:
    scene, company = household.scene, household.company
    chief = scene.person("chief")
    household.add("paul", calls=1, operators=(chief.user_id,))
    household.up()
    room, office = company.direct("paul"), company.direct("paul", chief)
    company.bob.send(room, "one")
    assert company.bob.wait_text(room, company.ids["paul"]) == ["re: one"]

    def ask_in_vain(text: str, refusals: int) -> str:
        """The event of the question that the operator is asked."""
        company.bob.send(room, text)
        company.bob.wait_for("a notice", lambda: len(company.notices(room, "paul")) == refusals)
        chief.wait_for("a question", lambda: len(questions(company, office)) == refusals)
        assert len(company.asked("paul")) == refusals
        return questions(company, office)[-1]

    ask_in_vain("two", 1)
    (question,) = json.loads(household.mind("questions", "paul", "--json"))["questions"]
    household.mind("questions", "answer", "paul", question["id"], "reopen")
    assert company.bob.wait_text(room, company.ids["paul"], 2) == ["re: one", "re: two"]
    react(chief, office, ask_in_vain("three", 2), "✅")
    assert company.bob.wait_text(room, company.ids["paul"], 3) == ["re: one", "re: two", "re: three"]
    react(chief, office, ask_in_vain("four", 3), "❌")
    chief.wait_for("it to be taken", lambda: LEFT in company.notices(office, "paul"))
    assert len(company.asked("paul")) == 3


LEFT = render_sentence("en", NoticeKey.QUESTION_RETIRED)


def questions(company: Company, office: str) -> list[str]:
    """The events in which she asked something there."""
    return [one["event_id"] for one in company.messages(office, "paul") if "“reopen”" in one["content"]["body"]]
