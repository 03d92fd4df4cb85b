"""Loop: the work of simulated Selves: claimed by the rule (heartbeat/claim.py) until it is done, or the breaker calls it enough."""

from dataclasses import replace
from typing import TYPE_CHECKING

from mind_body.control.effective import Released
from mind_body.heartbeat.breaker import find_trip
from mind_body.heartbeat.claim import Claim, decide_claim
from mind_body.heartbeat.wake import Wait
from mind_body.mind.records import Run, RunKind
from mind_body.mind.work_records import FollowUp, FollowUpState, OpenWork, WorkFacts
from mind_body.model.lease_lines import Refused
from probes.swarming.minds import SimMind

if TYPE_CHECKING:
    from probes.swarming.world import World

OUTCOMES = ("done",) * 12 + ("flushed",) * 4 + ("failed", "died", "no-result", "limited")
HOPELESS = 0.1
"""How often work is such that every run of it comes to nothing."""


class Bench:
    def __init__(self, world: "World") -> None:
        self._world = world
        self._hopeless: set[str] = set()
        self._numbers = 0

    def open(self, mind: SimMind, conversation: str) -> None:
        """Somebody asked for something that takes work."""
        if not mind.house.config.self.enabled:
            return
        self._numbers += 1
        self._world.tally.works += 1
        id_ = f"w{self._numbers}"
        if self._world.chance.random() < HOPELESS:
            self._hopeless.add(id_)
        mind.works.append(OpenWork(_make_follow_up(id_, conversation, self._world.now), (), f"work:{id_}"))
        self.look(mind)

    def look(self, mind: SimMind) -> None:
        now = self._world.now
        if mind.working is not None or not mind.works:
            return
        mind.roll(self._world.window())
        standing = replace(mind.standing(), live=None, pauses=(), recent=())
        facts = WorkFacts(open=tuple(mind.works), proposals=(), reactions=(), standing=standing)
        decision = decide_claim(facts, mind.control, mind.house, now)
        if isinstance(decision, Claim):
            self._claim(mind, decision.follow_up)
        elif isinstance(decision, Wait):
            self._world.at(decision.until, lambda: self.look(mind))

    def _claim(self, mind: SimMind, follow_up: FollowUp) -> None:
        world = self._world
        self._numbers += 1
        world.tally.wakes["work"] += 1
        kind, where = RunKind.SELF_RUN, (follow_up.conversation,)
        mind.working = Run(f"s{self._numbers}", kind, where, "request", "work", world.now, "me", world.now, None, None, None, 1, 0)
        assert isinstance(mind.control, Released)
        caps = world.caps_of(mind)
        ceiling = min(400_000, mind.control.dial.run_cap)
        reserved = world.purse.reserve(mind.name, mind.credential, ceiling, mind.control, caps, world.window(), world.now)
        if isinstance(reserved, Refused):
            retry = max(reserved.until or 0, world.now + 60_000)
            world.at(world.now + 1000, lambda: self._end(mind, follow_up, "limited", retry))
            return
        took = round(world.chance.uniform(60, 1800) * 1000)

        def finish() -> None:
            cost = world.chance.randint(ceiling // 10, ceiling)
            world.purse.settle(reserved, cost)
            mind.roll(world.window())
            mind.spent_day, mind.spent_month = mind.spent_day + cost, mind.spent_month + cost
            hopeless = follow_up.id in self._hopeless
            self._end(mind, follow_up, "failed" if hopeless else world.chance.choice(OUTCOMES))

        world.at(world.now + took, finish)

    def _end(self, mind: SimMind, follow_up: FollowUp, outcome: str, retry_at: int = 0) -> None:
        world, run = self._world, mind.working
        assert run is not None
        ended = replace(run, ended_at=world.now, outcome=outcome)
        mind.working = None
        kept: list[OpenWork] = []
        for work in mind.works:
            if work.follow_up.id != follow_up.id:
                kept.append(work)
                continue
            going_on = replace(work, past=(ended, *work.past))
            tripped = find_trip(going_on.past) is not None
            world.tally.trips += tripped
            if outcome == "done" or tripped:
                mind.awaited = tuple(dict.fromkeys((*mind.awaited, follow_up.conversation)))
            else:
                kept.append(going_on)
        mind.works = kept
        if mind.live is None:
            world.look(mind)
        if retry_at:
            world.at(retry_at, lambda: self.look(mind))
        else:
            self.look(mind)


def _make_follow_up(id_: str, conversation: str, now: int) -> FollowUp:
    return FollowUp(
        id=id_,
        conversation=conversation,
        room_id="!work:sim",
        asked_in=None,
        asked_by="@op:sim",
        brief="",
        workspace="w",
        campaign=None,
        state=FollowUpState.OPEN,
        confirm_said=None,
        run_id=None,
        continues=None,
        thread_said=None,
        thread_root=None,
        opened_at=now,
        ended_at=None,
        result=None,
        why=None,
    )
