"""Wiring: is anything lost, said twice, reordered or left running, when organs are killed at every boundary and at random times?

    .venv/bin/python probes/crash.py [--organ all|self|heartbeat|lease] [--kills 300] [--seed 1] [--under systemd] [--keep DIR]

`all` is the household that talks; in `self` people ask for work, and the Self over the real claude CLI is what dies most.
`heartbeat` and `lease` are a house of three Minds that talk, work, speak unprompted, meet limits and run out of money; the one that
is named dies most. With `--under systemd` the household is a host of its own: its units start again what died, and its power is
cut. Prints one JSON object. All but `kills` of the first five must be zero; of `self` also `not_taken_again` and
`untold`; of the house these and `run_twice`, `wake_lost` and `ledger_difference` (micro-USD). `tried` says what died how often,
`wrong` names everything that did not happen exactly once and in order.
"""

import argparse
import json
import signal
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.real.parts.campaigns import CAMPAIGNS, open_campaign


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--organ", choices=CAMPAIGNS, default="all")
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--under", choices=["systemd"], help="over a real systemd in namespaces (root only), instead of `mind up`")
    parser.add_argument("--keep", type=Path, help="keep the household and its journal here")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started ends with the probe
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mind-crash-") as scratch:
        home = options.keep or Path(scratch) / "home"
        with open_campaign(options.organ, Path(scratch), home, options.seed, systemd=bool(options.under)) as campaign:
            found = campaign.run(options.kills)
    print(json.dumps({**found.as_json(), "seconds": round(time.monotonic() - began, 1)}))
    return 1 if found.wrong or any(found.must_be_zero()) else 0


if __name__ == "__main__":
    sys.exit(main())
