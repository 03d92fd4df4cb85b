"""Wiring: does a run end once, as it should, in time, and leave nothing, whatever its `claude` does?

    .venv/bin/python probes/zoo.py [--runs 100] [--seed 1] [--jobs 3] [--only NAME] [--under systemd]

Under systemd (root only) that `claude` runs in the sandbox of the real unit. Prints one JSON object. All but `runs` of the first
four must be zero; `tried` says how often each scenario was played, and its longest time; `found` names what was not right.
"""

import argparse
import json
import sys
import tempfile
import time
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import trio

from mind_body.log import configure
from tests.real.parts.systemd_zoo import open_host_zoo
from tests.real.parts.zoo import SCENARIOS, Report, pick, play


def play_one(name: str) -> Report:
    """In a process of the pool, on a home of its own."""
    configure("debug", "text")
    with tempfile.TemporaryDirectory(prefix="zoo-") as root:
        try:
            return trio.run(play, name, Path(root))
        except Exception as error:  # noqa: BLE001 - a finding, whatever it is
            return Report(name, wrong=["".join(traceback.format_exception(error))])


def play_here(names: list[str], jobs: int) -> list[Report]:
    with ProcessPoolExecutor(jobs) as pool:
        return list(pool.map(play_one, names))


def play_under_systemd(names: list[str], jobs: int) -> list[Report]:
    """On one host, side by side."""
    with (
        tempfile.TemporaryDirectory(prefix="zoo-") as scratch,
        open_host_zoo(Path(scratch)) as zoo,
        ThreadPoolExecutor(jobs) as pool,
    ):
        return list(pool.map(zoo.play, names))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=3, help="played side by side; most of a scenario is waiting")
    parser.add_argument("--only", choices=sorted(SCENARIOS))
    parser.add_argument("--under", choices=["systemd"])
    options = parser.parse_args()
    began = time.monotonic()
    names = [options.only] * options.runs if options.only else pick(options.runs, options.seed)
    reports = (play_under_systemd if options.under else play_here)(names, options.jobs)
    tried = Counter(report.name for report in reports)
    found = {
        "runs": len(reports),
        "wrong_outcome": sum(bool(report.wrong) for report in reports),
        "late": sum(report.late for report in reports),
        "leaked": sum(len(report.leaked) for report in reports),
        "found": [
            f"{report.name}: {one}"
            for report in reports
            for one in [*report.wrong, *(["it took too long"] if report.late else []), *report.leaked]
        ],
        "tried": {name: [tried[name], max(one.took_s for one in reports if one.name == name)] for name in sorted(tried)},
        "seconds": round(time.monotonic() - began, 1),
    }
    print(json.dumps(found, indent=2, ensure_ascii=False))
    return 0 if not (found["wrong_outcome"] or found["late"] or found["leaked"]) else 1


if __name__ == "__main__":
    sys.exit(main())
