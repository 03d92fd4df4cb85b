"""Loop: the beats of a simulated host, as heartbeat/look.py has them: who may speak offers herself, and on a beat one is picked.

Whether that was fair is counted here, by everybody's own figures: nobody may have scored higher than who was picked, and nobody may
be passed over more often than the bounds of heartbeat/pick.py allow.
"""

from collections.abc import Sequence
from time import perf_counter_ns
from typing import TYPE_CHECKING

from mind_body.control.effective import Released
from mind_body.control.govern import spacing_ms
from mind_body.heartbeat.pick import WEIGHTS, Contender, most_beats, most_passes, pick
from mind_body.heartbeat.tempo import next_beat, tempo
from mind_body.heartbeat.wake import Open, decide_wake
from probes.swarming.minds import SimMind
from probes.swarming.tally import SILENCE_DAYS, SILENCE_MOST

if TYPE_CHECKING:
    from probes.swarming.world import World

DAY = 86_400_000


class Beats:
    def __init__(self, world: "World") -> None:
        self._world = world
        self._contending: dict[str, SimMind] = {}
        self._ever: set[str] = set()
        """Who ever contended."""
        self._votes: dict[str, int | None] = {}
        self._tempo: int | None = None
        self._due = 0
        self._last: int | None = None
        self._last_gap = 0

    def offer(self, mind: SimMind) -> None:
        """She may speak unprompted."""
        assert mind.last_act is not None
        if mind.contender is None or (mind.contender.since, mind.contender.urgency) != (mind.last_act, mind.urgency):
            mind.contender = Contender(mind.name, mind.last_act, mind.urgency)
        self._contending[mind.name] = mind
        self._ever.add(mind.name)
        self._try()

    def withdraw(self, mind: SimMind) -> None:
        if self._contending.pop(mind.name, None) is not None:
            mind.in_a_row = 0

    def vote(self, mind: SimMind, seconds: int | None) -> None:
        mind.vote, self._tempo = seconds, None
        self._votes[mind.name] = seconds

    def _beat_s(self) -> int:
        if self._tempo is None:
            self._tempo = tempo(self._votes.values())
        return self._tempo

    def _try(self) -> None:
        """The host's beat, where one is due and somebody may speak on it."""
        world = self._world
        if not self._contending:
            return
        due = next_beat((self._last,), self._beat_s(), world.now)
        if due > world.now:
            if due != self._due:
                self._due = due
                world.at(due, self._try)
            return
        while self._contending:
            some = [mind.contender for mind in self._contending.values() if mind.contender is not None]
            began = perf_counter_ns()
            picked = pick(some, self._beat_s() * 1000, world.now)
            world.tally.picking_ns.append(perf_counter_ns() - began)
            assert picked is not None
            mind = world.minds[picked.name]
            mind.roll(world.window())
            decision = decide_wake(mind.facts(mind.sift(mind.budget())), mind.control, mind.house, world.now)
            if isinstance(decision, Open) and decision.cause == "beat":
                self._beat(mind, some, picked, decision)
                return
            self.withdraw(mind)  # what made her a contender is over: another is picked
            world.look(mind)

    def _beat(self, mind: SimMind, some: Sequence[Contender], picked: Contender, decision: Open) -> None:
        now, tally = self._world.now, self._world.tally
        gap = now - self._last if self._last is not None else 0
        tally.beats += 1
        tally.together += self._last is not None and gap < self._beat_s() * 1000
        tally.contenders_most = max(tally.contenders_most, len(some))
        self._judge(some, picked, even=gap == self._last_gap)
        self._last, self._last_gap = now, gap
        self.withdraw(mind)
        self._judge_silence(mind)
        mind.silent += 1
        self._world.open(mind, decision)
        self._try()

    def _judge(self, some: Sequence[Contender], picked: Contender, *, even: bool) -> None:
        now, minds, rivals = self._world.now, self._world.minds, len(self._ever)
        most, longest, starved = most_beats(rivals), now - picked.since, 0
        best = longest * WEIGHTS[picked.urgency] * (1 + 1e-12)
        for one in some:
            waited = now - one.since
            if one.urgency == picked.urgency and waited > longest:
                longest = waited
            if one is picked:
                continue
            mind = minds[one.name]
            mind.passes += 1
            mind.in_a_row = mind.in_a_row + 1 if even else 1
            mind.first_wait = mind.first_wait or waited
            passed = mind.passes >= rivals and mind.passes > most_passes(rivals, mind.first_wait, waited)
            starved += passed or mind.in_a_row >= most or waited * WEIGHTS[one.urgency] > best
        self._world.tally.starved += starved
        self._world.tally.unfair = max(self._world.tally.unfair, longest / max(now - picked.since, 1))

    def _judge_silence(self, mind: SimMind) -> None:
        now, tally = self._world.now, self._world.tally
        assert isinstance(mind.control, Released)
        tally.too_early += mind.last_act is None or now - mind.last_act < spacing_ms(mind.control.dial, mind.silent)
        mind.in_silence = [*(at for at in mind.in_silence if at > now - SILENCE_DAYS * DAY), now]
        tally.silence_passed += len(mind.in_silence) > SILENCE_MOST
