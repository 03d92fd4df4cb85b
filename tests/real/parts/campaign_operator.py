"""Door: who answers for a household in a campaign: empties purses, turns days over, and lets everything go on that asks."""

import contextlib
from collections.abc import Iterable

from mind_body.clock import local_day, local_month, now_ms
from mind_body.lease.ledger_read import Totals, read_totals
from tests.real.parts.campaign import RICH
from tests.real.parts.person import Person
from tests.real.parts.scene import Scene

DAY_MS = 25 * 3_600_000
LEFT_USD = 0.001
"""In an empty purse: less than any call may cost."""
_ASKED = """SELECT question.room_id, said.event_id FROM question JOIN said ON said.id = question.said_id
    WHERE question.state = 'asked' AND said.event_id IS NOT NULL"""
_TIMES = {"run": ("opened_at", "held_at", "ended_at"), "said": ("queued_at",)}


class Operator:
    """One for all Minds of a scene."""

    def __init__(self, scene: Scene, person: Person, minds: Iterable[str]) -> None:
        self._scene = scene
        self._person = person
        self._minds = tuple(minds)
        self._purses: dict[str, float] = {}

    def let_a_day_pass(self) -> None:
        """While nothing runs: whatever they have done, they did it a day ago."""
        for name in self._minds:
            for table, columns in _TIMES.items():
                earlier = ", ".join(f"{column} = {column} - {DAY_MS}" for column in columns)
                self._scene.forget(name, f"UPDATE {table} SET {earlier}")

    def empty_purse(self, name: str) -> None:
        """Nothing more may be spent today, however often as much again was allowed."""
        self._purses[name] = round((self._spent(name) / 1e6 + LEFT_USD) / self._times(name), 6)
        self._scene.configure(name, {"spend": {"day_usd": self._purses[name]}})

    def fill_purses(self) -> list[str]:
        """What is wrong: whoever had an empty one has spent more than she was allowed meanwhile."""
        wrong = []
        for name, usd in self._purses.items():
            spent, cap = self._spent(name), round(usd * 1e6) * self._times(name)
            wrong += [f"{name} has committed {spent} of {cap} micro-USD"] if spent > cap else []
            self._scene.configure(name, {"spend": RICH})
        self._purses.clear()
        return wrong

    def answer_questions(self) -> None:
        """Whatever is asked in a room goes on."""
        for name in self._minds:
            for row in self._scene.rows(name, _ASKED):
                with contextlib.suppress(AssertionError):  # answered already, and not heard yet
                    self._person.join(row["room_id"])
                    relation = {"rel_type": "m.annotation", "event_id": row["event_id"], "key": "✅"}
                    self._person.send(row["room_id"], {"m.relates_to": relation}, kind="m.reaction")

    def count_questions(self) -> int:
        return sum(len(self._scene.rows(name, "SELECT 1 FROM question")) for name in self._minds)

    def _spent(self, name: str) -> int:
        """Today, in micro-USD, with what is reserved."""
        now = now_ms()
        totals = read_totals(self._scene.ledger(), local_day(now, "UTC"), local_month(now, "UTC"))
        return totals.minds.get(name, Totals()).day

    def _times(self, name: str) -> int:
        """How often her cap may be spent today."""
        about = f"day:{local_day(now_ms(), 'UTC')}"
        return 1 + len(self._scene.rows(name, "SELECT 1 FROM question WHERE about = ? AND answer = 'reopen'", about))

    def list_rooms(self) -> set[str]:
        """Where was asked."""
        rows = [row for name in self._minds for row in self._scene.rows(name, "SELECT DISTINCT room_id FROM question")]
        return {row["room_id"] for row in rows} - {None}
