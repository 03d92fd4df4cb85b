"""Shapes: what a simulation counts, and the one object that it comes to."""

import statistics
from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

LAWS = ("caps_passed", "starved", "together", "too_early", "while_held", "loops_passed", "silence_passed", "lost")
"""Counts that must be zero."""
SILENCE_DAYS, SILENCE_MOST = 14, 24


def quantile(sorted_values: list[float], share: float) -> float | None:
    return round(sorted_values[min(int(share * len(sorted_values)), len(sorted_values) - 1)], 3) if sorted_values else None


@dataclass(slots=True)
class Tally:
    wakes: Counter[str] = field(default_factory=Counter)
    skips: Counter[str] = field(default_factory=Counter)
    waits_ms: "array[int]" = field(default_factory=lambda: array("q"))
    """From a person's word until its answer."""
    held_back: int = 0
    """Words that met a hold, a pause, a cap or quiet hours; they are told so, and wait for another reason than the machinery."""
    deciding_ns: "array[int]" = field(default_factory=lambda: array("q"))
    picking_ns: "array[int]" = field(default_factory=lambda: array("q"))
    beats: int = 0
    contenders: int = 0
    contenders_most: int = 0
    unfair: float = 1.0
    turns: int = 0
    words: int = 0
    works: int = 0
    trips: int = 0
    stopped: set[tuple[str, ...]] = field(default_factory=set)
    """Stretches in which bots were left unanswered."""
    starved: int = 0
    together: int = 0
    too_early: int = 0
    while_held: int = 0
    loops_passed: int = 0
    silence_passed: int = 0

    def report(
        self, *, minds: int, days: float, wall_s: float, caps_passed: int, waiting: int, refused: Counter[str]
    ) -> dict[str, Any]:
        waits, answered = sorted(wait / 1000 for wait in self.waits_ms), len(self.waits_ms) + self.held_back
        return {
            "minds": minds,
            "days": days,
            "wakes": dict(sorted(self.wakes.items())),
            "wait_s": {"p50": quantile(waits, 0.5), "p99": quantile(waits, 0.99)},
            "fairness": round(self.unfair, 6),
            "beats_per_day": round(self.beats / days, 2),
            "caps_passed": caps_passed,
            "starved": self.starved,
            "loops_stopped": len(self.stopped),
            "wall_s": round(wall_s, 2),
            "decision_us_median": _median_us(self.deciding_ns),
            "together": self.together,
            "too_early": self.too_early,
            "while_held": self.while_held,
            "loops_passed": self.loops_passed,
            "silence_passed": self.silence_passed,
            "contenders_most": self.contenders_most,
            "pick_us_median": _median_us(self.picking_ns),
            "decisions": len(self.deciding_ns),
            "words": self.words,
            "answered": answered,
            "waiting": waiting,
            "lost": self.words - answered - waiting,
            "held_back": self.held_back,
            "turns": self.turns,
            "works": self.works,
            "works_tripped": self.trips,
            "skips": dict(sorted(self.skips.items())),
            "refused": dict(sorted(refused.items())),
        }


def _median_us(nanoseconds: "array[int]") -> float | None:
    return round(statistics.median(nanoseconds) / 1000, 2) if nanoseconds else None
