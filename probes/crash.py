"""Wiring: is anything lost, said twice, reordered or left running, when organs are killed at every boundary and at random times?

    .venv/bin/python probes/crash.py [--organ all|self] [--kills 300] [--seed 1] [--keep DIR]

`all` is the household that talks; in `self` people ask for work, and the Self over the real claude CLI is what dies most. Prints
one JSON object. All but `kills` of the first five must be zero, and of `self` also `not_taken_again` and `untold`; `tried` says
what died how often, `wrong` names everything that was not said exactly once and in order.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.real.parts.campaign import Campaign
from tests.real.parts.campaign_work import WorkCampaign, do_work, start_work
from tests.real.parts.chat_api import answer_with, open_chat_api
from tests.real.parts.echo import echo
from tests.real.parts.messages_api import scripted_messages_api
from tests.real.parts.synapse import open_homeserver


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--organ", choices=("all", "self"), default="all")
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="keep the household and its journal here")
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mind-crash-") as scratch:
        home = options.keep or Path(scratch) / "home"
        talk = answer_with(start_work if options.organ == "self" else echo)
        with (
            open_homeserver(Path(scratch) / "synapse") as homeserver,
            open_chat_api(talk) as api,
            scripted_messages_api(do_work) as works,
        ):
            campaign = (
                WorkCampaign(homeserver, api, works, home, options.seed)
                if options.organ == "self"
                else Campaign(homeserver, api, home, options.seed)
            )
            try:
                found = campaign.run(options.kills)
            finally:
                campaign.scene.close()
    print(json.dumps({**found.as_json(), "seconds": round(time.monotonic() - began, 1)}))
    return 0 if not (found.lost or found.twice or found.reordered or found.orphans or found.wrong) else 1


if __name__ == "__main__":
    sys.exit(main())
