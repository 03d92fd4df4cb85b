"""The fault zoo in the real units: the same scenarios, each with a Mind of its own whose work begins as an operator begins it.

The real heartbeat claims it, a poke starts `mind-self@`, and the `claude` of the scenario runs in the sandbox of that unit. Only
the seconds of the constants are divided, by a program of the zoo's that takes the place of `mind` in the unit. Nobody listens or
talks: the mouth does not run.
"""

import contextlib
import json
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from mind_body.clock import now_ms
from tests.real.parts.scene import _toml, wait_until
from tests.real.parts.systemd_campaign import open_host
from tests.real.parts.systemd_product import MIND, PYTHON, Product
from tests.real.parts.zoo import AGAIN, DIVISOR, GONE_S, SCALED, SCENARIOS, SLACK_S, START_MS, Report, Scenario
from tests.real.parts.zoo_claude import install_zoo

ROOM, OPERATOR = "!work:example.org", "@op:example.org"
SLACK = 3 * SLACK_S
"""Over the sum of the constants: a unit is started, too."""
ORGAN = f"""#!{PYTHON}
import sys
from dataclasses import replace
from mind_body.cli.main import main
from mind_body.self_run import main as organ
from mind_body.self_run.constants import Constants

class Scaled:
    def scaled(_):
        return replace(Constants().scaled({DIVISOR}), start_ms={START_MS})

organ.make_constants = lambda _: Scaled
sys.exit(main())
"""
MEET = """
import sqlite3, sys
with sqlite3.connect(sys.argv[1], timeout=10) as db:
    db.execute("INSERT INTO room (room_id, number, membership, direct, conversation) VALUES (?, 1, 'joined', 1, ?)",
        (sys.argv[2], "direct:" + sys.argv[2]))
"""
RUNS = """SELECT run.id, outcome, end_reason, run.ended_at - run.opened_at AS took_ms,
    (SELECT group_concat(state) FROM (SELECT replace(state, 'claimed', 'open') AS state FROM follow_up ORDER BY id)) AS work
    FROM run WHERE kind = 'self_run' AND run.ended_at IS NOT NULL ORDER BY run.opened_at, run.id"""
"""What has ended. Work that is open is soon claimed again: the heartbeat goes on."""


class HostZoo:
    """One host on which scenarios are played, also side by side."""

    def __init__(self, product: Product) -> None:
        self.product, self.bed = product, product.bed
        self._numbers = count(1)
        self.bed.systemctl("stop", "mind.target")
        self.bed.write(f"{MIND}-zoo", ORGAN, 0o755)
        self.bed.drop_in("mind-self@.service", "ExecStart=", f"ExecStart={MIND}-zoo organ self --mind %i", name="zoo")
        self.bed.path("/etc/mind/config.toml").write_text(_toml({"spend": {"day_usd": 100_000.0, "month_usd": 1_000_000.0}}))
        self.bed.systemctl("start", "mind-heartbeat.service", "mind-lease.service", "mind-lease-stream.socket")

    def play(self, name: str) -> Report:
        scenario, report, mind = SCENARIOS[name], Report(name), f"z{next(self._numbers)}"
        try:
            self._make(mind, scenario)
            self._start(mind)
            self._check(mind, scenario, report)
            self._count_leaks(mind, report)
        except AssertionError as error:
            report.wrong.append(f"{mind}: {error}")
        return report

    def _make(self, mind: str, scenario: Scenario) -> None:
        options = dict(scenario.options)
        if "limit" in options:
            options["limit"] = now_ms() // 1000 + 3600
        place = self.bed.path(f"/opt/zoo/{mind}")
        place.mkdir(parents=True)
        install_zoo(place, **options)
        self.product.mind(
            "new", mind, "--no-input", "--homeserver", "http://127.0.0.1:9", "--user", f"@{mind}:example.org",
            "--password-file", "-", "--operator", OPERATOR, "--release", "--no-start", text="none",
        )  # fmt: skip
        own = {"enabled": True, "model": "", "credential": "none", "cli": f"/opt/zoo/{mind}/claude", "linger_s": 0.0}
        path = self.bed.path(f"/etc/mind/minds/{mind}.toml")
        path.write_text(_toml({**tomllib.loads(path.read_text()), "self": {**own, **scenario.settings}}))
        self.bed.run(PYTHON, "-IS", "-c", MEET, f"/var/lib/mind/{mind}/mind.db", ROOM, user="mind-heartbeat")
        self.product.mind("dial", mind, "--base-run-usd", "20")
        self.bed.systemctl("start", f"mind-self@{mind}.socket")

    def _start(self, mind: str) -> None:
        self.product.mind("run", "start", mind, "--brief", "Write hello into a.txt.", "--workspace", "site", "--room", ROOM)

    def _check(self, mind: str, scenario: Scenario, report: Report) -> None:
        if scenario.stop_after is not None:
            self._stop(mind, scenario.stop_after)
        run = self._wait_ended(mind, scenario, 1)
        report.took_s = run["took_ms"] / 1000
        report.late = report.took_s > scenario.takes_s + SLACK
        if scenario.again is None:
            self.product.mind("brake", "hold", mind)
        self._judge(mind, run, scenario, report)
        if scenario.again is not None:
            if "open" not in run["work"]:
                self._start(mind)
            again = self._wait_ended(mind, scenario, 2)
            self.product.mind("brake", "hold", mind)
            _expect(report, "the second outcome", again["outcome"], scenario.again)

    def _stop(self, mind: str, after: str) -> None:
        wait_until(after, lambda: self.bed.journal(f"MIND={mind}", f"KIND={after}"), 60)
        (run,) = self.product.rows(mind, "SELECT id FROM run WHERE kind = 'self_run' AND ended_at IS NULL")
        self.product.mind("run", "stop", run["id"])

    def _wait_ended(self, mind: str, scenario: Scenario, which: int) -> dict[str, Any]:
        """The run of that number. Twice the time that is right: what is late is to be seen, too."""
        ended: list[dict[str, Any]] = []
        deadline = time.monotonic() + 2 * (scenario.takes_s + SLACK)
        while len(ended) < which:
            assert time.monotonic() < deadline, f"no run number {which} ended; {self.product.rows(mind, 'SELECT * FROM run')}"
            time.sleep(0.2)
            ended = self.product.rows(mind, RUNS)
        return ended[which - 1]

    def _judge(self, mind: str, run: dict[str, Any], scenario: Scenario, report: Report) -> None:
        _expect(report, "the outcome", run["outcome"], scenario.outcome)
        if scenario.reason not in (run["end_reason"] or ""):
            report.wrong.append(f"the reason is '{run['end_reason']}', without '{scenario.reason}'")
        _expect(report, "the work", tuple(run["work"].split(",")), scenario.work)
        handoffs = self.product.rows(
            mind, "SELECT origin, length(CAST(text AS BLOB)) AS size FROM handoff WHERE run_id = ?", run["id"]
        )
        if scenario.handoff is not None or scenario.work != AGAIN:
            right = [scenario.handoff] if scenario.handoff else []
            _expect(report, "the hand-off", [one["origin"] for one in handoffs], right)
        if any(one["size"] > SCALED.handoff_max_bytes for one in handoffs):
            report.wrong.append("the hand-off is too long")
        match = (f"MIND={mind}", f"RUN={run['id']}")
        ends = wait_until("its last line", lambda: self.bed.journal(*match, "KIND=self.ended"), 20)
        _expect(report, "the run's last lines", len(ends), 1)
        if (stored := len(self.bed.journal(*match, "KIND=self.handed-off"))) > 1:
            report.wrong.append(f"{stored} hand-offs were stored")
        if scenario.prefix is not None:
            _expect(report, "its size", ends[0].get("PREFIX_TOKENS"), str(scenario.prefix))

    def _count_leaks(self, mind: str, report: Report) -> None:
        unit = f"mind-self@{mind}.service"
        self.bed.wait_state(unit, "inactive", 60)
        with contextlib.suppress(AssertionError):
            wait_until("it to be gone", lambda: not self._processes(mind), GONE_S)
        known = {row["id"] for row in self.product.rows(mind, "SELECT id FROM session")}
        places = self.bed.path(f"/var/lib/mind/{mind}/self")
        here = {path.name for path in places.iterdir()} if places.exists() else set()
        report.leaked += [f"process {one}" for one in self._processes(mind)]
        report.leaked += [f"directory {one}" for one in here - known]
        failed = self.bed.show(unit, "Result")["Result"]
        _expect(report, "the end of its unit", failed, "success")

    def _processes(self, mind: str) -> list[str]:
        """Of its unit, and whatever has its directories mounted, whoever its parent is by now."""
        found, mine = [], f"/var/lib/mind/{mind} "
        for one in self.bed.processes():
            with contextlib.suppress(OSError):
                if one.unit == f"mind-self@{mind}.service" or mine in Path(f"/proc/{one.pid}/mountinfo").read_text():
                    found.append(f"{one.pid} {one.unit} {one.command[:80]}")
        return found


@contextmanager
def open_host_zoo(scratch: Path) -> Iterator[HostZoo]:
    """Everything ends with the block; the journal is left beside the bed."""
    with open_host(scratch) as product:
        try:
            yield HostZoo(product)
        finally:
            (scratch / "journal.txt").write_text(product.bed.told())


def _expect(report: Report, what: str, found: Any, right: Any) -> None:
    if found != right:
        report.wrong.append(f"{what}: {json.dumps(found)}, not {json.dumps(right)}")
