"""Rule: what the scripted models of a campaign served, as their providers would bill it, and how the ledger stands to that.

1. The models of one household: a Persona's answers (talk, work, a scheduled wake), and a Self's. Each answer is priced by
   prices.toml as it is given: that is the bill, whoever lives to hear it.
2. A bill and a call on record are brought together from outside: a Persona's call is its turn, and a turn's input is what was
   sent; a Self's names the piece of work.
3. The difference is in micro-USD. Whatever was billed must be settled at just that, or lie within a reservation that is open;
   whatever was settled must have been billed. So the ledger never says less than the bills, and never more than the bills and
   the whole reservations of calls that are unsettled.
"""

import json
import random
import re
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mind_body.lease.ledger_read import LedgerCall, read_calls, read_difference
from mind_body.model.price_file import read_prices
from mind_body.model.prices import price
from mind_body.model.session import Usage
from mind_body.model.usage import parse_usage
from tests.real.parts import chat_api
from tests.real.parts.campaign_work import do_work, read_brief, start_work
from tests.real.parts.echo import echo, read_mail
from tests.real.parts.messages_api import Answer, Calls, Prose, Request
from tests.real.parts.scene import Scene

MODEL = "claude-opus-4-7"
LIMIT_S = 4
_WHO = re.compile(r"You are (\w+), @")
BEAT = re.compile(r"beat b\d{5}")
_SCHEDULED = "This is a scheduled wake"


@dataclass(frozen=True)
class Bill:
    """One answer that was given."""

    mind: str
    about: str
    """What was sent to a Persona, or the number of the work."""
    micro_usd: int


@dataclass
class Models:
    """The scripted models of a household."""

    home_room: Mapping[str, str] = field(default_factory=dict)
    """Mind → the handle of the room in which she speaks unprompted."""
    limited: set[str] = field(default_factory=set)
    """Whose next call meets a limit of her plan."""
    bills: list[Bill] = field(default_factory=list)
    limits: int = 0
    """That were met."""
    beats: list[str] = field(default_factory=list)
    """What was answered to scheduled wakes."""
    slow: random.Random = field(default_factory=lambda: random.Random(1))

    def __post_init__(self) -> None:
        self._prices = read_prices()
        self._lock = threading.Lock()

    def talk(self, request: chat_api.Request) -> chat_api.Answer:
        """A Persona's."""
        who = _WHO.search(str(request.messages[0]["content"]))
        assert who is not None, "whose prompt is this?"
        with self._lock:
            if who[1] in self.limited:
                self.limited.discard(who[1])
                self.limits += 1
                return chat_api.limited(str(LIMIT_S))(request)
            answer = chat_api.completion(request, json.dumps(self._say(who[1], request)), model=MODEL)
            return replace(
                answer, wait_s=self.slow.choice((0.0, 0.0, self.slow.uniform(0.0, 0.4))), body=self._bill(who[1], request, answer)
            )

    def work(self, request: Request) -> Answer:
        """A Self's."""
        answer = do_work(request)
        assert isinstance(answer, Prose | Calls)
        assert answer.usage is not None
        with self._lock:
            self.bills.append(
                Bill("ada", read_brief(request)[1], self._price(str(request.body["model"]), parse_usage(answer.usage)))
            )
        return answer

    def _say(self, mind: str, request: chat_api.Request) -> dict[str, Any]:
        text = request.last_user
        reply = start_work(request) | {"urgency": 100 * (request.number % 10), "tempo": 900}
        if any(re.fullmatch(r"q\d{5}", one.text) for one in read_mail(text)):
            reply["say"] += echo(request)["say"]
        if _SCHEDULED in text:
            self.beats.append(f"beat b{request.number:05d}")
            reply["say"].append({"room": self.home_room[mind], "text": self.beats[-1], "reply_to": None, "thread": None})
        if mind != "ada":
            del reply["start_self_run"], reply["tell_self"]
        return reply

    def _bill(self, mind: str, request: chat_api.Request, answer: chat_api.Answer) -> dict[str, Any]:
        assert isinstance(answer.body, dict)
        said = str(answer.body["choices"][0]["message"]["content"])
        sent, output = len(request.raw) // chat_api.BYTES_PER_TOKEN, len(said) // chat_api.BYTES_PER_TOKEN
        self.bills.append(Bill(mind, request.last_user, self._price(MODEL, Usage(uncached=sent, output=output))))
        return answer.body | {"usage": {"prompt_tokens": sent, "completion_tokens": output, "total_tokens": sent + output}}

    def _price(self, model: str, usage: Usage) -> int:
        return price(self._prices, model, usage).micro_usd


@dataclass(frozen=True)
class Books:
    """The bills against the ledger."""

    difference: int
    billed: int
    committed: int
    unsettled: int
    """Calls that count whole."""
    wrong: tuple[str, ...]


def judge_books(scene: Scene, minds: Iterable[str], bills: Iterable[Bill]) -> Books:
    """Nothing runs any more."""
    path, bills = scene.ledger(), list(bills)
    calls = read_calls(path)
    billed: dict[tuple[str, str], list[int]] = defaultdict(list)
    made: dict[tuple[str, str], list[LedgerCall]] = defaultdict(list)
    inputs = {mind: _read_inputs(scene, mind) for mind in minds}
    works = _read_works(scene)
    for call in calls:
        known = works.get(call.run, "?") if call.half == "self" else inputs[call.mind].get(call.id, "?")
        made[call.mind, known].append(call)
    for bill in bills:
        billed[bill.mind, _name(bill, inputs[bill.mind].values())].append(bill.micro_usd)
    wrong = {key: off for key in {*billed, *made} if (off := find_difference(billed[key], made[key]))}
    sums = read_difference(path)
    words = [f"{off} micro-USD off: {mind}, {about[-200:]!r}" for (mind, about), off in wrong.items()]
    words += [f"the ledger's sums are {sums} off its rows"] if sums else []
    return Books(
        difference=sum(wrong.values()) + sums,
        billed=sum(bill.micro_usd for bill in bills),
        committed=sum(_counted(call) for call in calls),
        unsettled=sum(call.state == "reserved" for call in calls),
        wrong=tuple(words),
    )


def find_difference(bills: Iterable[int], calls: Iterable[LedgerCall]) -> int:
    """Of what was asked in one and the same words."""
    calls = list(calls)
    settled = Counter(call.cost_micro_usd for call in calls if call.state == "settled" and call.cost_micro_usd)
    billed = Counter(bills)
    unbilled = sum((settled - billed).elements())
    covers = sorted(call.reserved_micro_usd for call in calls if call.state == "reserved")
    uncovered = sum(max(bill - (covers.pop() if covers else 0), 0) for bill in sorted((billed - settled).elements(), reverse=True))
    return unbilled + uncovered


def _name(bill: Bill, inputs: Iterable[str]) -> str:
    """What was sent is a turn's input, behind what its session began with."""
    return max((one for one in inputs if bill.about == one or bill.about.endswith(f"\n\n{one}")), key=len, default=bill.about)


def _read_inputs(scene: Scene, mind: str) -> dict[str, str]:
    return {row["id"]: row["input"] for row in scene.rows(mind, "SELECT id, input FROM turn")}


def _read_works(scene: Scene) -> dict[str, str]:
    rows = scene.rows("ada", "SELECT run.id, brief FROM run JOIN follow_up ON follow_up.id = run.follow_up_id")
    return {row["id"]: row["brief"].split()[-1] for row in rows}


def _counted(call: LedgerCall) -> int:
    return call.reserved_micro_usd if call.state == "reserved" else call.cost_micro_usd
