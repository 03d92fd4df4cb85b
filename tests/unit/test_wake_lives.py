"""Wakes from mail to end with a real mind file, in any order: hearing, looking, adopting, dying, holding, pauses, time passing."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mind_body.control.govern import MENDABLE, SPREAD_MS
from mind_body.heartbeat.launch import Launcher
from mind_body.host.liveness import Hold, take_hold
from mind_body.log import Journal
from mind_body.mind.records import Pause, Run, RunKind
from mind_body.mind.runs import adopt_run, charge_run, end_run, live_run, read_pauses, set_pause
from mind_body.mind.store import open_mind
from mind_body.settings import HostConfig
from tests.builders import NOW, hold, insert_heard, insert_room, make_config, make_home, release
from tests.examples import share

HOST = HostConfig(start_grace_s=2.0, restart_min_s=0.5, restart_max_s=4.0)
CONFIG = make_config()
KIND = RunKind.PERSONA_TURN
PAUSE_MS = 10_000
LONGEST_MS = 2000 + 4000 + 5000 + PAUSE_MS + SPREAD_MS
"""Grace, back-off, debounce and a pause: mail never waits longer for a run to be opened, once nothing forbids it."""


class WakeLives(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.directory = TemporaryDirectory()
        self.home = make_home(Path(self.directory.name), "ada")
        self.mind = open_mind(self.home.mind_db("ada"))
        self.now = NOW
        self.launcher = Launcher("ada", self.home, HOST, Journal("heartbeat").bind())
        self.persona: Hold | None = None
        self.born = 0
        self.held = False
        self.ended: dict[str, tuple[object, ...]] = {}
        self.mind._db.execute("PRAGMA synchronous=OFF")  # no power is cut here
        with self.mind.write() as tx:
            insert_room(tx)

    def teardown(self) -> None:
        try:
            self.all_mail_finds_a_run()
        finally:
            if self.persona:
                self.persona.release()
            self.mind.close()
            self.directory.cleanup()

    def live(self) -> Run | None:
        with self.mind.read() as tx:
            return live_run(tx, KIND)

    def pending(self) -> int:
        with self.mind.read() as tx:
            return int(tx.execute("SELECT count(*) FROM heard WHERE state = 'pending'").fetchone()[0])

    def look(self) -> None:
        before, until = self.live(), self.paused_until()
        self.launcher.look(self.mind, CONFIG, self.now)
        after = self.live()
        if after is not None and (before is None or before.id != after.id):
            assert until <= self.now, "nothing is opened in a pause that no operator ends"

    def paused_until(self) -> int:
        with self.mind.read() as tx:
            return max((one.until for one in read_pauses(tx) if one.cause not in MENDABLE), default=0)

    @rule()
    def hear(self) -> None:
        with self.mind.write() as tx:
            insert_heard(tx, at=self.now)
        self.look()

    @rule(ms=st.integers(1, 3000))
    def time_passes(self, ms: int) -> None:
        self.now += ms
        self.look()

    @rule()
    def a_word_is_said_and_falls_due(self) -> None:
        self.hear()
        self.time_passes(LONGEST_MS)

    @rule()
    def the_heartbeat_is_started_anew(self) -> None:
        self.launcher = Launcher("ada", self.home, HOST, Journal("heartbeat"))
        self.look()

    @rule()
    def the_brake_is_turned(self) -> None:
        self.held = not self.held
        hold(self.home, "ada") if self.held else release(self.home, "ada")
        self.look()

    @rule(cause=st.sampled_from(["limited", "overloaded", "fault", "spend"]), ms=st.integers(1, PAUSE_MS))
    def a_pause_begins(self, cause: str, ms: int) -> None:
        with self.mind.write() as tx:
            set_pause(tx, Pause(cause, self.now + ms, "a test", since=self.now))
        self.look()

    @precondition(lambda self: self.persona is None)
    @rule()
    def a_persona_is_born(self) -> None:
        self.born += 1
        self.persona = take_hold(self.home.lock_file("persona", "ada"), f"persona-{self.born}")
        assert self.persona is not None

    @precondition(lambda self: self.persona is not None)
    @rule(looks=st.booleans())
    def she_dies(self, looks: bool) -> None:
        assert self.persona is not None
        self.persona.release()
        self.persona = None
        if looks:
            self.look()

    @precondition(lambda self: self.persona is not None and self.live() is not None)
    @rule()
    def she_adopts(self) -> None:
        run = self.live()
        assert run is not None
        assert self.persona is not None
        with self.mind.write() as tx:
            assert adopt_run(tx, run.id, self.persona.holder, self.now) is (run.holder is None)

    @precondition(lambda self: self.persona is not None and self.live() is not None)
    @rule(answers=st.booleans())
    def she_ends_what_she_holds(self, answers: bool) -> None:
        run = self.live()
        assert run is not None
        assert self.persona is not None
        with self.mind.write() as tx:
            if answers and charge_run(tx, run.id, self.persona.holder, 1):
                tx.execute("UPDATE heard SET state = 'closed'")
            assert end_run(tx, run.id, self.persona.holder, "done", "x", self.now) is (run.holder == self.persona.holder)
        self.look()

    @invariant()
    def one_run_is_live_and_a_run_ends_once(self) -> None:
        with self.mind.read() as tx:
            rows = [tuple(row) for row in tx.execute("SELECT id, ended_at, outcome, end_reason FROM run")]
        assert sum(row[1] is None for row in rows) <= 1
        ended = {str(row[0]): row for row in rows if row[1] is not None}
        assert self.ended.items() <= ended.items()
        self.ended = ended

    @invariant()
    def nothing_is_opened_while_held(self) -> None:
        run = self.live()
        assert not (self.held and run is not None and run.holder is None)

    def all_mail_finds_a_run(self) -> None:
        """However it stands: once she is released and her process gone, mail gets a run in bounded time, by due instants alone."""
        release(self.home, "ada")
        if self.persona:
            self.persona.release()
            self.persona = None
        self.look()
        until = self.now + LONGEST_MS
        dead = self.live()
        while self.pending() and (self.live() is None or self.live() == dead):
            assert self.launcher.due is not None, "mail waits and nothing is due"
            assert self.launcher.due > self.now
            self.now = self.launcher.due
            assert self.now <= until
            self.look()


TestWakeLives = WakeLives.TestCase
TestWakeLives.settings = settings(max_examples=share(0.15), stateful_step_count=25, deadline=None)
