"""Wiring: who acts when, and at whose cost, in a whole population of Minds: the real rules over a simulated clock.

    .venv/bin/python probes/swarm.py [--minds 100] [--days 7] [--people P] [--bots B] [--seed 1] [--zone ZONE] [--start DATE]

Prints one JSON object. `wait_s` is from a person's word until its answer, of who was not kept from answering: what met a hold, a
pause, a cap or quiet hours is told so, and is counted in `held_back`. `fairness` is the worst, over all beats, of how much longer
somebody of the same urgency had waited than who was picked: 1 is fair. `starved` counts Minds that were passed over on a beat for
one that scored lower at that instant, or more often than heartbeat/pick.py proves. `loops_stopped` counts the stretches in which
bots, or other Minds, were left unanswered. `decision_us_median` is of sifting and deciding, for one Mind.

Must be zero, or the exit code is 1: `caps_passed`, `starved`, `together` (two beats closer than their spacing), `too_early` (for
the cadence), `while_held`, `loops_passed` (turns for a bot beyond the budget), `silence_passed` (more than 24 scheduled wakes in
14 days in which no person spoke), `lost` (people's words that were neither answered nor wait).
"""

import argparse
import datetime as dt
import gc
import json
import sys
import time
import zoneinfo
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from probes.swarming.population import DAY, Plan, make_world
from probes.swarming.tally import LAWS

START = "2026-10-22"
"""Three days before clocks are set back in Europe."""


def simulate(plan: Plan) -> dict[str, Any]:
    began = time.perf_counter()
    world = make_world(plan)
    world.run(plan.start + round(plan.days * DAY))
    configs = {name: mind.house.config for name, mind in world.minds.items()}
    return world.tally.report(
        minds=plan.minds,
        days=plan.days,
        wall_s=time.perf_counter() - began,
        caps_passed=world.purse.passed(configs, world.extensions),
        waiting=sum(mind.under_way + sum(len(box.spoken) for box in mind.boxes.values()) for mind in world.minds.values()),
        refused=world.purse.refused,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minds", type=int, default=100)
    parser.add_argument("--days", type=float, default=7.0)
    parser.add_argument("--people", type=int, help="as many as there are Minds, where it is not said")
    parser.add_argument("--bots", type=int, help="one for twenty Minds, where it is not said")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--zone", default="Europe/Berlin", help="the host's and the people's time zone")
    parser.add_argument("--start", default=START, help="the first day")
    options = parser.parse_args()
    gc.disable()  # nothing here goes in circles that would be worth looking for; it would take a quarter of the time
    start = dt.datetime.fromisoformat(options.start).replace(tzinfo=zoneinfo.ZoneInfo(options.zone))
    plan = Plan(
        minds=options.minds,
        days=options.days,
        people=options.minds if options.people is None else options.people,
        bots=options.minds // 20 if options.bots is None else options.bots,
        seed=options.seed,
        zone=options.zone,
        start=round(start.timestamp() * 1000),
    )
    found = simulate(plan)
    print(json.dumps(found, indent=2, ensure_ascii=False))
    return 1 if any(found[law] for law in LAWS) else 0


if __name__ == "__main__":
    sys.exit(main())
