"""Wiring: each crash campaign with everything that it runs over, for the tests and for `probes/crash.py`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from tests.real.parts.campaign import Campaign
from tests.real.parts.campaign_bills import Models
from tests.real.parts.campaign_house import HouseCampaign
from tests.real.parts.campaign_work import WorkCampaign, do_work, start_work
from tests.real.parts.chat_api import answer_with, open_chat_api
from tests.real.parts.echo import echo
from tests.real.parts.messages_api import scripted_messages_api
from tests.real.parts.scene import Scene
from tests.real.parts.synapse import Homeserver, open_homeserver
from tests.real.parts.systemd_campaign import open_host_scene

Which: TypeAlias = Literal["all", "self", "heartbeat", "lease"]
CAMPAIGNS: tuple[Which, ...] = get_args(Which)


@contextmanager
def open_campaign(which: Which, scratch: Path, home: Path, seed: int, *, systemd: bool = False) -> Iterator[Campaign]:
    """Not begun. Everything that it has started ends with the block. Under systemd `home` is where the journal goes in the end."""
    with (
        open_homeserver(scratch / "synapse") as homeserver,
        open_host_scene(scratch) if systemd else nullcontext(Scene) as scene,
        _open(which, homeserver, home, seed, scene) as campaign,
    ):
        try:
            yield campaign
        finally:
            campaign.scene.close()


@contextmanager
def _open(which: Which, homeserver: Homeserver, home: Path, seed: int, scene: Callable[..., Scene]) -> Iterator[Campaign]:
    if which == "all":
        with open_chat_api(answer_with(echo)) as api:
            yield Campaign(homeserver, api, home, seed, scene=scene)
    elif which == "self":
        with open_chat_api(answer_with(start_work)) as api, scripted_messages_api(do_work) as works:
            yield WorkCampaign(homeserver, api, works, home, seed, scene=scene)
    else:
        models = Models()
        with open_chat_api(models.talk) as api, scripted_messages_api(models.work) as works:
            yield HouseCampaign(homeserver, api, works, models, home, which, seed, scene=scene)
