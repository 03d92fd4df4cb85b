"""A day of one Mind under a real systemd, read back from the journal.

Every message and wake has its line with its reason, each kind is explained; nothing that anybody wrote, and no secret, is there.
"""

import json
import re
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from mind_body.journal_kinds.table import KINDS
from tests.parts_present import require_part
from tests.real.parts.chat_api import Request as Asked
from tests.real.parts.chat_api import answer_with, fault, held, say
from tests.real.parts.echo import echo, read_mail
from tests.real.parts.messages_api import Answer, MessagesApi, Prose, Request, call, prefix, scripted_messages_api
from tests.real.parts.person import Person
from tests.real.parts.scene import wait_until
from tests.real.parts.systemd_product import CLAUDE, MIND
from tests.real.parts.systemd_scene import PASSWORD, Household

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("systemd"), pytest.mark.early]
CANARY = "canary"
"""Part of every word that anybody writes: people, her model, her Self, its model, and of every secret of hers."""
SELF_KEY = "sk-ant-canary-0123456789"
SECRETS = (PASSWORD, SELF_KEY)
Line = dict[str, Any]


def talk(request: Asked) -> dict[str, Any]:
    """Her Persona: repeats what it hears, has work done where it is asked for it, tells what is done."""
    answer: dict[str, Any] = {"react": [], "start_self_run": None, "tell_self": None}
    mail = read_mail(request.last_user)
    if not mail:
        return {**answer, "say": [{"room": "r1", "text": "It is done, says the canary.", "reply_to": None, "thread": None}]}
    if "work" in mail[-1].text:
        brief = {"brief": f"Write {CANARY}.txt, please.", "asked_in": mail[-1].handle, "repo": None, "campaign": None}
        return {**answer, "say": [], "start_self_run": brief}
    return {**answer, **echo(request)}


def work(request: Request) -> Answer:
    """Her Self: one call, which fills its context; its hand-off; then the result."""
    told = json.dumps(request.body["messages"], ensure_ascii=False)
    if "and nothing else" in json.dumps(request.body["messages"][-1]):
        return Prose(f"The hand-off of the {CANARY}.", usage=prefix(311_000))
    if f"hand-off of the {CANARY}" in told:
        return Prose(f"All is written: {CANARY}.", usage=prefix(20_000))
    return call("Bash", prefix(310_000), command=f"echo {CANARY} > {CANARY}.txt")


@pytest.fixture
def works() -> Iterator[MessagesApi]:
    require_part("claude")
    require_part("bubblewrap")
    with scripted_messages_api(work) as api:
        yield api


class Day:
    """What happened, as the homeserver and the mind have it; and the journal's lines."""

    def __init__(self, household: Household, bob: Person, room: str, her: str) -> None:
        self.household, self.bob, self.room, self.her = household, bob, room, her
        self.sent: list[str] = []

    def say(self, text: str) -> None:
        self.sent.append(self.bob.send(self.room, f"{text} {CANARY}"))

    def wait(self, what: str, sql: str, count: int = 1, deadline_s: float = 60.0) -> None:
        try:
            wait_until(what, lambda: len(self.household.product.rows("ada", sql)) >= count, deadline_s)
        except AssertionError as late:
            raise AssertionError(f"{late}\n{self.household.product.mind('log', 'ada')}") from None

    def lines(self) -> list[Line]:
        return self.household.bed.journal("--all", "MIND=ada")


@pytest.fixture
def day(household: Household, works: MessagesApi) -> Day:
    household.api.default = answer_with(talk)
    bob = household.person()
    settings = {
        "enabled": True,
        "base_url": works.url,
        "credential": "api-key",
        "model": "claude-opus-4-7",
        "cli": f"{CLAUDE}/claude",
    }
    her = household.new("ada", self={**settings, "linger_s": 1.0}, people={"operators": [bob.user_id]})
    household.self_key("ada", SELF_KEY)
    household.enable("ada")
    day = Day(household, bob, household.talk("ada", bob, her), her)
    _live_it(day)
    return day


def _live_it(day: Day) -> None:
    turns = "SELECT 1 FROM turn WHERE state = '{}'".format
    api, bed = day.household.api, day.household.bed
    day.say("hello")
    day.wait("an answer", turns("replied"))
    api.script(say("", refusal=f"I will not, {CANARY}."))
    day.say("something bad")
    day.wait("a refusal", turns("refused"))
    api.script(fault(429, "Slow down", retry_after="1"))
    day.say("and then")
    day.wait("a limit", turns("limited"))
    day.wait("the answer after it", turns("replied"), 2)
    api.script(say(f"no JSON, says the {CANARY}"), say(f"again none, {CANARY}"))
    day.say("something unreadable")
    day.wait("what could not be read", turns("unreadable"))
    gate, asked = threading.Event(), len(api.requests)
    api.script(held(gate, api.default))
    day.say("while you die")
    api.wait_for(asked + 1)
    bed.systemctl("kill", "--signal=KILL", "mind-persona@ada.service")
    gate.set()
    day.wait("the answer after a crash", turns("replied"), 3)
    day.say("some work, please")
    day.wait("its result", "SELECT 1 FROM run WHERE kind = 'self_run' AND outcome = 'result'", deadline_s=120)
    day.wait("that it is told", turns("replied"), 5)
    day.household.wait_gone("ada")


def test_the_journal_of_a_day(day: Day) -> None:
    lines = day.lines()
    _every_message_has_its_line(day, lines)
    _every_wake_and_turn_has_its_line(day, lines)
    _every_line_is_whole(lines)
    _each_is_explained(day, lines)
    _nothing_that_anybody_wrote_is_there(day)
    shown = day.household.bed.run(MIND, "log", "ada", "--since=-1h").stdout
    assert all(line["MESSAGE"] in shown for line in lines)


def of_kind(lines: list[Line], *kinds: str, **fields: str) -> list[Line]:
    return [line for line in lines if line["KIND"] in kinds and all(line.get(name) == value for name, value in fields.items())]


def _every_message_has_its_line(day: Day, lines: list[Line]) -> None:
    for event in day.sent:
        (heard,) = of_kind(lines, "heard.mail", EVENT=event)
        assert heard["REASON"]
        assert heard["ROOM"] == day.room
        assert heard["SENDER"] == day.bob.user_id
    said = day.household.product.rows("ada", "SELECT id FROM said WHERE state = 'sent'")
    for row in said:
        assert of_kind(lines, "said.sent", "said.found", SAID=row["id"]), row


def _every_wake_and_turn_has_its_line(day: Day, lines: list[Line]) -> None:
    runs = day.household.product.rows("ada", "SELECT * FROM run")
    for run in runs:
        (opened,) = of_kind(lines, "run.opened", RUN=run["id"])
        assert opened["CAUSE"] == run["cause"]
        ended = of_kind(lines, "run.ended", "run.closed", "self.ended", RUN=run["id"])
        assert [bool(line["REASON"]) for line in ended] == [True], f"{run}\n{day.household.product.mind('log', 'ada')}"
    for turn in day.household.product.rows("ada", "SELECT * FROM turn WHERE state <> 'lost'"):
        (line,) = of_kind(lines, f"turn.{turn['state']}", TURN=turn["id"])
        assert {"RUN", "CONVERSATION", "CACHE_READ", "CACHE_WRITE", "COST_MICRO_USD", "SESSION"} <= line.keys()
        assert turn["state"] == "replied" or line["REASON"]
    assert of_kind(lines, "run.closed"), "the one that was killed"
    (flush,) = of_kind(lines, "self.flush-asked")
    assert flush["REASON"]
    assert of_kind(lines, "self.handed-off")
    assert all(int(line["PREFIX_TOKENS"]) > 0 for line in of_kind(lines, "self.ended"))


def _every_line_is_whole(lines: list[Line]) -> None:
    for line in lines:
        assert line["SYSLOG_IDENTIFIER"] == "mind", line
        assert line["MESSAGE_ID"] == KINDS[line["KIND"]].message_id
        assert line["ORGAN"] in {"mouth", "heartbeat", "persona", "self", "lease"}
        assert line["_SYSTEMD_UNIT"].startswith(f"mind-{line['ORGAN']}")
        assert re.fullmatch(r"[A-Z0-9'].*[.]", line["MESSAGE"]), line["MESSAGE"]


def _each_is_explained(day: Day, lines: list[Line]) -> None:
    told = day.household.bed.run("journalctl", "-q", "-x", "MIND=ada").stdout
    assert told.count("Defined-By: mind-body") == len(lines)
    for kind in {line["KIND"] for line in lines}:
        assert f"Subject: {KINDS[kind].what.removesuffix('.')}" in told


def _nothing_that_anybody_wrote_is_there(day: Day) -> None:
    """In no line of the whole host, also not where a process wrote to its stderr."""
    whole = day.household.bed.run("journalctl", "-q", "-o", "json", "--all", "_SYSTEMD_SLICE=mind.slice").stdout
    assert day.sent[0] in whole, "it is the right place to look at"
    assert CANARY not in whole
    assert not [secret for secret in SECRETS if secret in whole]
    token = day.household.bed.run("sh", "-c", "cat /var/lib/mind/mouth.d/ada.*").stdout.strip()
    assert token
    assert not [word for word in token.replace('"', " ").split() if len(word) > 20 and word in whole]
