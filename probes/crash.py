"""Wiring: is anything lost, said twice, reordered or left running, when organs are killed at every boundary and at random times?

    .venv/bin/python probes/crash.py [--kills 300] [--seed 1] [--keep DIR]

Prints one JSON object. All but `kills` of the first five must be zero; `tried` says what died how often, `wrong` names every number
that was not answered exactly once and in order.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.real.parts.campaign import Campaign
from tests.real.parts.chat_api import answer_with, open_chat_api
from tests.real.parts.echo import echo
from tests.real.parts.synapse import open_homeserver


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="keep the household and its journal here")
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mind-crash-") as scratch:
        home = options.keep or Path(scratch) / "home"
        with open_homeserver(Path(scratch) / "synapse") as homeserver, open_chat_api(answer_with(echo)) as api:
            campaign = Campaign(homeserver, api, home, options.seed)
            try:
                found = campaign.run(options.kills)
            finally:
                campaign.scene.close()
    print(json.dumps({**found.as_json(), "seconds": round(time.monotonic() - began, 1)}))
    return 0 if not (found.lost or found.twice or found.reordered or found.orphans) else 1


if __name__ == "__main__":
    sys.exit(main())
