"""A child and its driver on paper: plays any sequence of facts to `decide`, and keeps what it answered.

The driver's side notes each action as mind_body/self_run/facts.py says. The child's side does whatever a test, or Hypothesis,
likes: nothing here makes it answer, heed, exit or keep its word. Time is handed on by `wait_out`, to the instant that was named.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from mind_body.self_run.actions import (
    Action,
    CloseStdin,
    EndSession,
    Feed,
    Interrupt,
    Kill,
    Outcome,
    Record,
    Reopen,
    StoreHandoff,
    Terminate,
    Wait,
    Why,
    WriteFlush,
)
from mind_body.self_run.constants import Constants
from mind_body.self_run.decide import decide
from mind_body.self_run.facts import Child, Facts, Flush, Ladder, Standing, Verdict

BEGAN = 5_000_000
LADDER = (Interrupt, EndSession, CloseStdin, Terminate, Kill)
DONE = Verdict(Outcome.RESULT, "done")


def make_facts(began: int = BEGAN, **changes: Any) -> Facts:
    """A run that has just begun, with a child that was just started and a message for it."""
    values: dict[str, Any] = {
        "now": began,
        "began_at": began,
        "child": Child(Standing.STARTING, began),
        "next_message": "start",
        "last_line_at": began,
    }
    return Facts(**(values | changes))


@dataclass
class Bench:
    facts: Facts = field(default_factory=make_facts)
    constants: Constants = field(default_factory=Constants)
    trace: list[tuple[int, Action]] = field(default_factory=list)
    """Every action but waiting, with its instant."""
    until: int | None = None
    """What the newest Wait named."""
    flushes: int = 0
    stored: int = 0

    @property
    def actions(self) -> list[Action]:
        return [action for _, action in self.trace]

    @property
    def recorded(self) -> Record | None:
        return next((action for action in self.actions if isinstance(action, Record)), None)

    def settle(self) -> "Bench":
        """Ask and do, until there is nothing to do."""
        for _ in range(100):
            action = decide(self.facts, self.constants)
            if isinstance(action, Wait):
                self.until = action.until
                return self
            gone = self.facts.child.standing is Standing.GONE
            assert not gone or isinstance(action, StoreHandoff | Reopen | Record), f"{action} to a child that is gone"
            self.trace.append((self.facts.now, action))
            self._note(action)
        raise AssertionError(f"it never comes to rest: {self.actions[-6:]}")

    def change(self, **changes: Any) -> "Bench":
        """Something is seen."""
        self.facts = replace(self.facts, **changes)
        return self.settle()

    def change_child(self, **changes: Any) -> "Bench":
        return self.change(child=replace(self.facts.child, **changes))

    def change_flush(self, **changes: Any) -> "Bench":
        assert self.facts.flush is not None
        return self.change(flush=replace(self.facts.flush, **changes))

    def wait_out(self) -> "Bench":
        """Nothing is seen until the instant that was named."""
        assert self.until is not None
        assert self.until > self.facts.now, "a Wait into the past is a busy loop"
        return self.change(now=self.until)

    def pass_time(self, ms: int) -> "Bench":
        """Some time, but never past the instant that was named: a driver asks then."""
        later = self.facts.now + ms
        return self.change(now=later if self.until is None else min(later, self.until))

    def wait_for_the_end(self) -> "Bench":
        """Nothing is seen any more, whatever is done."""
        for _ in range(100):
            if self.recorded:
                return self
            self.wait_out()
        raise AssertionError(f"it never ends: {self.actions[-6:]}")

    # What a child may do.

    def comes_up(self, window: int | None = 200_000) -> "Bench":
        self.facts = replace(self.facts, child=replace(self.facts.child, standing=Standing.READY))
        return self.change(window_tokens=window, last_line_at=self.facts.now)

    def works(self, prefix: int = 20_000) -> "Bench":
        """A line of the model's."""
        return self.change(answered=True, prefix_tokens=prefix, last_line_at=self.facts.now)

    def ends_turn(self, verdict: Verdict = DONE) -> "Bench":
        return self.change(busy=False, result=verdict, answered=True, tool_limit_ms=None, last_line_at=self.facts.now)

    def starts_flush(self) -> "Bench":
        return self.change_flush(started_at=self.facts.now)

    def answers_flush(self, size: int | None) -> "Bench":
        """The turn that held it ends, with so many bytes or with none."""
        self.facts = replace(self.facts, busy=False, last_line_at=self.facts.now, tool_limit_ms=None)
        return self.change_flush(over=True, answer_bytes=size)

    def goes_deaf(self) -> "Bench":
        return self.change_child(standing=Standing.DEAF, deaf_at=self.facts.now)

    def exits(self, code: int | None = 0, *, drained: bool = True) -> "Bench":
        return self.change_child(standing=Standing.GONE, gone_at=self.facts.now, exit_code=code, drained=drained)

    def _note(self, action: Action) -> None:
        facts, now = self.facts, self.facts.now
        match action:
            case Feed():
                self._change(fed=facts.fed + 1, busy=True, result=None, next_message=None, last_write_at=now)
            case WriteFlush(ask=ask, reason=reason):
                self.flushes += ask == "flush"
                kept = facts.flush.answer_bytes if ask == "shorter" and facts.flush else None
                flush = Flush(ask, reason, now, facts.prefix_tokens, kept_bytes=kept)
                self._change(flush=flush, busy=True, last_write_at=now)
            case StoreHandoff():
                self.stored += 1
                self._change(handoff_stored=True)
            case Interrupt(why=Why.OVERRAN):
                assert facts.flush is not None
                self._change(flush=replace(facts.flush, interrupted_at=now))
            case Reopen():
                fresh = make_facts(now)
                child = replace(fresh.child, reopened=True)
                calls = {name: getattr(facts, name) for name in ("held", "stopped", "spent", "capped", "limited")}
                self.facts = replace(fresh, began_at=facts.began_at, child=child, **calls)
            case Record():
                self._change(recorded=True)
            case _:
                self._change(ladder=_climb(facts.ladder, action, now))

    def _change(self, **changes: Any) -> None:
        self.facts = replace(self.facts, **changes)


def _climb(ladder: Ladder, action: Action, now: int) -> Ladder:
    match action:
        case Interrupt(why=why, reason=reason):
            return replace(ladder, why=why, reason=reason, interrupted_at=now)
        case EndSession(why=why, reason=reason):
            return replace(ladder, why=ladder.why or why, reason=ladder.reason or reason, ended_at=now)
        case CloseStdin():
            return replace(ladder, closed_at=now)
        case Terminate():
            return replace(ladder, terminated_at=now)
        case Kill():
            return replace(ladder, killed_at=now)
        case _:
            raise AssertionError(action)


def working(prefix: int = 20_000, **changes: Any) -> Bench:
    """In the middle of its first turn."""
    return Bench(make_facts(**changes)).settle().comes_up().works(prefix)


def flushing(**changes: Any) -> Bench:
    """Asked for its hand-off, at the ceiling of a 200k window, in the middle of a turn."""
    return working(**changes).works(140_000)


def begin(*, warm: bool, prefix: int) -> Bench:
    """A run over a child that was just started, or over a warm one."""
    child = Child(Standing.READY if warm else Standing.STARTING, BEGAN)
    window = 200_000 if warm else None
    return Bench(make_facts(child=child, window_tokens=window, prefix_tokens=prefix if warm else 0)).settle()
