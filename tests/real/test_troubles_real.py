"""What a model's refusals come to in a whole house: what is called, what is said and waited, and how it goes on (cases M3).

`paul` and `ada` share a key. Paul is asked by bob and, while the model thinks about that, by carol; then the model refuses. After
that dan asks ada. Of the spread that follows a reset paul waits next to nothing and ada nearly all, by their names.
"""

import itertools
import math
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mind_body.control.govern import SPREAD_MS
from mind_body.heartbeat.house import chance_of
from mind_body.host.secrets import write_secret
from mind_body.matrix.notices import NoticeKey, render_sentence
from tests.real.parts.chat_api import Answer, Request, answer_with, fault, open_chat_api
from tests.real.parts.company import HOST, Company, answer_each, new_mail
from tests.real.parts.person import Person
from tests.real.parts.scene import Scene, wait_until
from tests.real.parts.synapse import Homeserver

pytestmark = pytest.mark.real

KEY, NEW_KEY = "sk-shared-3a7b90", "sk-renewed-c41d2e"
SLOWER = 1.5
"""A reset comes after so many times what the first answers took, or after what the table says."""
HOUR_MS = 3_600_000
ECHO = answer_with(lambda request: answer_each(request, lambda _, mail: f"re: {mail.text}"))


@dataclass(frozen=True)
class Case:
    """One way to be refused."""

    status: int
    cause: str
    """Of the pause."""
    waits_ms: tuple[int, ...] = ()
    """How long each of the pauses is; empty where the server says it."""
    told: NoticeKey | None = None
    """What those who wait are told; once."""
    resets_s: int = 0
    """What the server says at least."""
    shared: bool = True
    """It stops every Mind with this key."""
    ends: str = ""
    """What an operator does; empty where it ends by itself."""
    order: tuple[str, ...] = ("one", "two")
    """In which paul answers then."""


CASES = {
    "401": Case(401, "authentication", (HOUR_MS,), NoticeKey.UNREACHABLE, ends="renew the keys"),
    "402": Case(402, "payment", (HOUR_MS,), NoticeKey.UNREACHABLE, ends="pay, and turn the dials"),
    "429": Case(429, "limited", told=NoticeKey.LIMITED, resets_s=12),
    "529": Case(529, "overloaded", resets_s=6),
    # The third time in a row is told. A message that was there all three times goes behind the others.
    "500": Case(
        500, "fault", (5_000, 10_000, 20_000), NoticeKey.UNREACHABLE, shared=False, ends="turn the dials", order=("two", "one")
    ),
}


class Model:
    """Answers until it is broken; then refuses bob's message so many times, or everybody who calls with the old key."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.may_refuse = threading.Event()
        self.retry_after: str | None = None
        self.refused_at: list[float] = []

    def __call__(self, request: Request) -> Answer:
        if not self.refuses(request):
            return ECHO(request)
        assert self.may_refuse.wait(60)
        self.refused_at.append(time.time())
        return fault(self.case.status, retry_after=self.retry_after)(request)

    def refuses(self, request: Request) -> bool:
        texts = [mail.text for mail in new_mail(request)]
        if self.case.status == 401:
            return texts != ["hello"] and request.headers["authorization"] == f"Bearer {KEY}"
        return "one" in texts and len(self.refused_at) < max(len(self.case.waits_ms), 1)


class Story:
    """The house, and who has asked what."""

    def __init__(self, scene: Scene, api: Any, case: Case) -> None:
        self.scene, self.case, self.model = scene, case, Model(case)
        api.default = self.model
        settings = {"model": {"credential": "api-key"}}
        self.company = Company(scene, api, "paul", "ada", tables=settings)
        self.bob, self.carol, self.dan = self.company.bob, scene.person("carol"), scene.person("dan")
        self.renew(KEY)

    def renew(self, key: str) -> None:
        for name in self.company.names:
            write_secret(self.scene.home.model_key(name), key)

    def begin(self) -> None:
        """Everybody has a room, and both Minds have answered there."""
        began = time.monotonic()
        self.scene.up()
        self.rooms = {
            "one": self.company.direct("paul"),
            "two": self.company.direct("paul", self.carol),
            "three": self.company.direct("ada", self.dan),
        }
        for person, text, name in ((self.bob, "one", "paul"), (self.dan, "three", "ada")):
            person.send(self.rooms[text], "hello")
            person.wait_text(self.rooms[text], self.company.ids[name])
        if self.case.resets_s:
            self.model.retry_after = str(max(self.case.resets_s, math.ceil(SLOWER * (time.monotonic() - began))))

    def ask(self, person: Person, text: str, name: str) -> None:
        """She has heard it when this returns."""
        event = person.send(self.rooms[text], text)
        self.scene.wait_rows(name, f"{text} to be heard", "SELECT 1 FROM heard WHERE event_id = ?", event)

    def wait_pause(self, name: str, strikes: int = 1) -> dict[str, Any]:
        (row,) = self.scene.wait_rows(
            name, "a pause", "SELECT * FROM pause WHERE cause = ? AND strikes = ?", self.case.cause, strikes
        )
        return row

    def calls(self, name: str) -> int:
        """How often the model was called for her since everybody was greeted."""
        return len(self.company.asked(name)) - 1

    def notices(self) -> dict[str, list[str]]:
        return {text: self.company.notices(room, "ada" if text == "three" else "paul") for text, room in self.rooms.items()}

    def answers(self) -> dict[str, list[str]]:
        return {
            text: [said for said in self.company.said(room, "ada" if text == "three" else "paul") if said != "re: hello"]
            for text, room in self.rooms.items()
        }

    def told_at(self) -> list[int]:
        """When each notice was said, by the homeserver."""
        rooms = [(room, "ada" if text == "three" else "paul") for text, room in self.rooms.items()]
        said = [event for room, name in rooms for event in self.company.messages(room, name)]
        return [int(event["origin_server_ts"]) for event in said if event["content"]["msgtype"] == "m.notice"]

    def order(self) -> list[str]:
        """What paul's calls were about."""
        return [new_mail(request)[-1].text for request in self.company.asked("paul")]

    def went_on_at(self, name: str) -> int:
        """When the first turn after the greeting that came to an answer was opened."""
        rows = self.scene.rows(name, "SELECT opened_at FROM turn WHERE state = 'replied' ORDER BY opened_at, id")
        return int(rows[1]["opened_at"])

    def mend(self) -> None:
        if self.case.status == 401:
            self.renew(NEW_KEY)
        elif self.case.ends:
            for name in self.company.names:
                self.scene.dial(name, heat=0.9)


def spread_ms(name: str, pause: dict[str, Any]) -> int:
    """How long after its end she goes on: in a quarter of its length, and half a minute, at most."""
    length = int(pause["until"]) - int(pause["since"])
    return round(min(SPREAD_MS, length // 4) * chance_of(name))


@pytest.fixture
def story(homeserver: Homeserver, tmp_path: Path, case: Case) -> Iterator[Story]:
    with open_chat_api() as api:
        scene = Scene(homeserver, tmp_path / "home", **HOST)
        try:
            yield Story(scene, api, case)
        finally:
            scene.close()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_m3_each_refusal_has_its_own_calls_words_and_waits_and_everybody_is_answered_after_it(story: Story, case: Case) -> None:
    story.begin()
    story.ask(story.bob, "one", "paul")
    wait_until("the call", lambda: story.calls("paul") == 1)
    story.ask(story.carol, "two", "paul")
    story.model.may_refuse.set()

    # Waited: as long as the table or the server says. Called: once for each wait, and for ada not at all.
    pause = story.wait_pause("paul", max(len(case.waits_ms), 1))
    gaps = [after - before for before, after in itertools.pairwise(story.model.refused_at)]
    assert all(gap * 1000 >= wait_ms for gap, wait_ms in zip(gaps, case.waits_ms, strict=False))
    if story.model.retry_after is None:
        assert pause["until"] - pause["since"] == case.waits_ms[-1]
    else:
        asked_ms = int(story.model.retry_after) * 1000
        assert story.model.refused_at[0] * 1000 + asked_ms - 1 <= pause["until"] <= pause["since"] + asked_ms
    refusals, before = len(story.model.refused_at), {"paul": pause}
    story.ask(story.dan, "three", "ada")  # she hears all the same
    if case.shared:
        before["ada"] = story.wait_pause("ada")
        assert case.ends or before["ada"]["until"] == pause["until"]
        assert {line["WHY"] for line in story.company.lines("call.refused", "ada")} == {case.cause}
    else:
        story.dan.wait_text(story.rooms["three"], story.company.ids["ada"], 2)

    # Said: one sentence in each room where somebody waits, or nothing.
    words = [render_sentence("en", case.told, until=pause["until"])] if case.told else []
    told = {"one": words, "two": words, "three": words if case.shared else []}
    story.dan.wait_for("notices", lambda: story.notices() == told)
    assert all(at >= story.model.refused_at[-1] * 1000 for at in story.told_at())
    assert (story.calls("paul"), story.calls("ada")) == (refusals, 0 if case.shared else 1)

    # Over: everybody is answered, once; nobody is told anything more.
    story.mend()
    wait_until("answers", lambda: story.answers() == {text: [f"re: {text}"] for text in story.rooms})
    story.company.wait_settled()
    assert (story.calls("paul"), story.calls("ada")) == (refusals + 2, 1)
    assert story.notices() == told
    assert story.order()[-2:] == list(case.order)
    if not case.ends:
        planned = [before[name]["until"] + spread_ms(name, before[name]) for name in story.company.names]
        instants = [story.went_on_at(name) for name in story.company.names]
        assert all(at >= earliest for at, earliest in zip(instants, planned, strict=True))
        assert instants[0] < instants[1] or not case.told, "after a longer wait, not both at once"
    if case.status == 401:
        keys = [request.headers["authorization"] for request in story.company.asked("paul")[-2:] + story.company.asked("ada")[-1:]]
        assert keys == [f"Bearer {NEW_KEY}"] * 3
