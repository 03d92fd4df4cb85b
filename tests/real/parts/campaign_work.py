"""Loop: the crash campaign for work: a Self over the real `claude` CLI is killed at its boundaries and at random, and its house.

1. Somebody asks for a numbered piece of work in a DM; the scripted Persona starts it, the scripted model behind the Self uses a
   tool and says that the number is done, and the Persona tells so. So every number is begun, done and told once, in this order.
2. One piece of work at a time: after each kill it must be taken again and come to its end by itself. A round may need the flush
   (a scripted prefix over the ceiling) or a steering message (which must reach the model).
3. In the end the room is read back through the account that asked: one thread per number, one line for each run that died in it.
   After each round no process of the household may be left, whoever its parent is.
"""

import json
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.real.parts.campaign import AT_WORK, Campaign, Findings
from tests.real.parts.chat_api import ChatApi
from tests.real.parts.chat_api import Request as Asked
from tests.real.parts.echo import read_mail
from tests.real.parts.messages_api import Answer, MessagesApi, Prose, Request, call, prefix
from tests.real.parts.person import Event
from tests.real.parts.scene import Scene, Table, wait_until
from tests.real.parts.synapse import Homeserver

_BRIEF = re.compile(r"\| (work|slow|flush) (w\d{5})")
_DONE = re.compile(r"done (w\d{5})")
FLUSH = "and nothing else"
BEGINS, INTERRUPTED = "I am working on this for", "My work on this was interrupted."
NEEDS = {"self.flush-asked": "flush", "self.handoff-stored": "flush", "ear.steer": "slow"}
RANDOM = ("self", "self", "self", "self", "mouth", "heartbeat", "persona", "lease", "up")


def start_work(request: Asked) -> dict[str, Any]:
    """The Persona: starts what is asked for, tells what is done."""
    mail = [one for one in read_mail(request.last_user) if re.fullmatch(r"(work|slow|flush) w\d{5}", one.text)]
    done = [] if read_mail(request.last_user) else list(dict.fromkeys(_DONE.findall(request.last_user)))
    start = {"brief": mail[-1].text, "asked_in": mail[-1].handle, "repo": None, "campaign": None} if mail else None
    say = [{"room": "r1", "text": f"told {number}", "reply_to": None, "thread": None} for number in done]
    return {"say": say, "react": [], "start_self_run": start, "tell_self": None}


def do_work(request: Request) -> Answer:
    """The model of the Self: a tool, then the number; a hand-off where it is asked for one."""
    messages = request.body["messages"]
    texts = json.dumps(messages, ensure_ascii=False)
    kind, number = read_brief(request)
    blocks = _newest(messages)
    if FLUSH in json.dumps(blocks):
        return Prose(f"The hand-off of {number}: all that is left is to say that it is done.", usage=prefix(311_000))
    flushes = kind == "flush" and f"hand-off of {number}" not in texts
    if any(block.get("type") == "tool_result" for block in blocks):
        return Prose(f"done {number}", usage=prefix(20_000))
    command = "sleep 2" if kind == "slow" else f"echo {number} >> log.txt"
    return call("Bash", prefix(310_000 if flushes else 10_000), command=command)


def read_brief(request: Request) -> tuple[str, str]:
    """What is worked on: its kind and number."""
    kind, number = _BRIEF.findall(json.dumps(request.body["messages"], ensure_ascii=False))[-1]
    return kind, number


def _newest(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The blocks since the model's last word: a message folded into a turn is one of its own."""
    blocks: list[dict[str, Any]] = []
    for message in reversed(messages):
        if message["role"] == "assistant":
            break
        content = message["content"]
        blocks += [{"type": "text", "text": content}] if isinstance(content, str) else content
    return blocks


@dataclass
class WorkFindings(Findings):
    """The same for work: `lost` and `twice` count what is begun, done and told, and words to a running Self."""

    dead: int = 0
    """Runs that ended as dead."""
    not_taken_again: int = 0
    """Of those."""
    untold: int = 0
    """Of those, without their one line in the thread, or with more."""
    runs: int = 0

    def must_be_zero(self) -> tuple[int, ...]:
        return (*super().must_be_zero(), self.not_taken_again, self.untold)


class WorkCampaign(Campaign):
    """One room, and in it one piece of work after the other."""

    points = AT_WORK
    grace_s = 10.0

    def __init__(
        self,
        homeserver: Homeserver,
        api: ChatApi,
        works: MessagesApi,
        directory: Path,
        seed: int = 1,
        tables: dict[str, Table] | None = None,
        *,
        scene: Callable[..., Scene] = Scene,
    ) -> None:
        own: dict[str, Table] = {
            "self": {
                "enabled": True,
                "model": "claude-opus-4-7",
                "base_url": works.url,
                "credential": "none",
                "linger_s": 2.0,
            },
            "people": {"operators": ["@bob-*"]},
        }
        super().__init__(homeserver, api, directory, seed, {**own, **(tables or {})}, scene=scene)
        self.found: WorkFindings = WorkFindings()
        self.works = works
        self.room = ""
        self._numbers_asked: list[str] = []
        self._notes: list[str] = []

    def prepare(self) -> None:
        self.scene.up()
        self.room = self.bob.create_room(invite=(self.her,), direct=True)
        self.scene.wait_joined("ada", self.room)
        self._end()

    def ask_work(self, kind: str) -> str:
        """The next piece of work."""
        number = f"w{next(self._numbers):05d}"
        self._numbers_asked.append(number)
        self.bob.send(self.room, f"{kind} {number}")
        return number

    def named_round(self, point: str) -> None:
        self.scene.up(**self._arm(point))
        number = self.ask_work(NEEDS.get(point, "work"))
        if point == "ear.steer":
            self._note(number)
        wait_until(f"{point} to be reached", self.scene.died, self.settle_s)
        self._count(point)
        self._finish_work(number)
        self._end()

    def random_round(self, kills: int) -> None:
        """At most two kills for a piece of work: what comes to nothing three times is given up, and says so."""
        self.scene.up()
        for _ in range(max(kills // 2, 1)):
            number = self.ask_work(self.random.choice(("work", "slow", "slow", "flush")))
            for _ in range(2):
                time.sleep(self.random.uniform(0.2, 3.0))
                self._kill(self.random.choice(RANDOM))
            self._finish_work(number)
        self._end()

    def homeserver_round(self, kills: int) -> None:
        """The same while the homeserver is away."""
        self.scene.up()
        number = self.ask_work("slow")
        live = "SELECT 1 FROM run WHERE kind = 'self_run' AND ended_at IS NULL"
        wait_until("the run", lambda: self.scene.rows("ada", live), self.settle_s)
        self.homeserver.stop(hard=self.random.random() < 0.5)
        for _ in range(min(kills, 2)):
            time.sleep(self.random.uniform(0.0, 1.0))
            self._kill("self")
        self.homeserver.start()
        self.found.homeserver_restarts += 1
        self._finish_work(number)
        self._end()

    def verdict(self) -> WorkFindings:
        self._judge_work()
        self.found.model_calls = len(self.works.requests)
        return self.found

    def _judge_work(self) -> None:
        events = [event for event in self.bob.messages(self.room, self.her) if "m.new_content" not in event["content"]]
        found = self.found
        found.asked += len(self._numbers_asked)
        told = Counter(event["content"]["body"] for event in events if event["content"]["msgtype"] == "m.text")
        for number in self._numbers_asked:
            roots = [
                event for event in events if event["content"]["body"].startswith(BEGINS) and number in event["content"]["body"]
            ]
            thread = [event for event in events if roots and _root_of(event) == roots[0]["event_id"]]
            ends = [place for place, event in enumerate(thread) if f"done {number}" in event["content"]["body"]]
            for what, count in (("begun", len(roots)), ("done", len(ends)), ("told", told[f"told {number}"])):
                self._judge(f"{what} {number}", count)
            if ends and ends[-1] != len(thread) - 1:
                found.reordered += 1
                found.wrong.append(f"reordered {number}: {[event['content']['body'][:40] for event in thread]}")
            self._judge_dead(number, [event["content"]["body"] for event in thread])
        for note in self._notes:
            if not any(note.encode() in request.raw for request in self.works.requests):
                found.lost += 1
                found.wrong.append(f"lost {note}")
        found.runs = len(self.scene.rows("ada", "SELECT 1 FROM run WHERE kind = 'self_run'"))
        found.notices += sum(event["content"]["msgtype"] == "m.notice" for event in events)

    def _judge(self, what: str, count: int) -> None:
        self.found.lost += count == 0
        self.found.twice += count > 1
        if count != 1:
            self.found.wrong.append(f"{count} times {what}")

    def _judge_dead(self, number: str, thread: list[str]) -> None:
        """Each run that died was taken again, and is one line in the thread where people had been told that it began."""
        runs = self.scene.rows(
            "ada",
            "SELECT run.outcome, run.holder IS NOT NULL AND said.queued_at <= run.ended_at AS told FROM run "
            "JOIN follow_up ON follow_up.id = run.follow_up_id LEFT JOIN said ON said.id = run.thread_said "
            "WHERE follow_up.brief LIKE ? ORDER BY run.id",
            f"%{number}",
        )
        dead = [place for place, run in enumerate(runs) if run["outcome"] == "dead"]
        told = sum(bool(runs[place]["told"]) for place in dead)
        lines = sum(body.startswith(INTERRUPTED) for body in thread)
        self.found.dead += len(dead)
        self.found.not_taken_again += bool(dead) and dead[-1] == len(runs) - 1
        if lines != told:
            self.found.untold += 1
            self.found.wrong.append(f"{told} runs died on {number}, and {lines} lines say so")

    def _note(self, number: str) -> None:
        """A word to the Self that works on it, in its thread."""
        root = wait_until("the thread", lambda: self._root(number), self.settle_s)
        note = f"note n{number[1:]}"
        self.bob.say_in_thread(self.room, root, note)
        self._notes.append(note)

    def _root(self, number: str) -> str | None:
        events = self.bob.messages(self.room, self.her)
        roots = [e for e in events if e["content"]["body"].startswith(BEGINS) and number in e["content"]["body"]]
        return str(roots[0]["event_id"]) if roots else None

    def _finish_work(self, number: str) -> None:
        try:
            wait_until(f"{number} to be told", lambda: f"told {number}" in self.bob.texts(self.room, self.her), self.settle_s)
            self.scene.wait_idle("ada", self.settle_s)
        except AssertionError as error:
            # Told in the verdict, with what the mind holds, instead of ending the campaign.
            self.found.wrong.append(f"after {self.found.kills} kills: {error}")

    def _no_orphans(self) -> None:
        super()._no_orphans()
        try:
            wait_until("children to end", lambda: not self.scene.left(), 5 * self.scene.patience)
        except AssertionError:
            left = self.scene.left()
            self.found.orphans += len(left)
            self.found.wrong += [f"left: {line}" for line in left]


def _root_of(event: Event) -> str | None:
    relation = event["content"].get("m.relates_to", {})
    return str(relation["event_id"]) if relation.get("rel_type") == "m.thread" else None
