"""Rule: what her operator has her work towards, as she is told it (design §6).

1. What is open when a session opens is the end of its system part, frozen with it. What changes later is told in a turn, so that
   nothing that was sent is ever rewritten.
2. It is the operator's own text. Every line of it is indented: so it can neither close its frame nor pass for a head of ours.
3. A small model gets a line for each, before her persona, whose examples stay the last word.
4. All together have a bound; beyond it the newest are told, whole. One that is left out is still open, and told once there is room.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mind_body.matrix.outside import clean
from mind_body.mind.asking_records import Campaign

INDENT = "    "
SMALL_CHARACTERS = 200
"""Of each, for a small model."""
BYTES_MAX = 16 * 1024
"""Of all together, as they are shown; in a small window a quarter of it, one token charged per byte. One alone always fits."""
_TITLE = "# What you work towards"
_INTRODUCTION = "Your operator has opened these campaigns; each is known by its slug."


@dataclass(frozen=True, slots=True)
class CampaignNews:
    """What a session has not been told yet."""

    opened: tuple[Campaign, ...] = ()
    closed: tuple[str, ...] = ()
    """Slugs."""


NO_NEWS = CampaignNews()


def fitting_campaigns(campaigns: Sequence[Campaign], *, small: bool = False, window_tokens: int | None = None) -> list[Campaign]:
    """The newest of those that are open, in their order."""
    left = BYTES_MAX if window_tokens is None else min(BYTES_MAX, window_tokens // 4)
    kept: list[Campaign] = []
    for campaign in reversed(campaigns):
        left -= len((_short(campaign) if small else _told(campaign)).encode("utf-8", "replace")) + 1
        if left < 0:
            break
        kept.append(campaign)
    return kept[::-1]


def campaign_news(told: Mapping[str, bool], campaigns: Sequence[Campaign], shown: Sequence[Campaign] | None = None) -> CampaignNews:
    """`told`: by slug, whether a session knows it as open; `campaigns`: all that are open; `shown`: those there is room for."""
    now_open = {campaign.slug for campaign in campaigns}
    return CampaignNews(
        tuple(one for one in (campaigns if shown is None else shown) if not told.get(one.slug, False)),
        tuple(slug for slug, is_open in told.items() if is_open and slug not in now_open),
    )


def with_campaigns(instructions: str, campaigns: Sequence[Campaign], *, small: bool) -> str:
    """The system part of a session that opens now."""
    if not campaigns:
        return instructions
    if small:
        return "\n".join([*(f"You work towards: {_short(one)}" for one in campaigns), "", instructions])
    return "\n".join([instructions, "", _TITLE, _INTRODUCTION, *(_told(one) for one in campaigns)])


def render_campaign_news(news: CampaignNews, *, small: bool) -> list[str]:
    """Lines for "What changed"."""
    if small:
        opened = [f"(You work towards this, too: {_short(one)})" for one in news.opened]
        return [*opened, *(f"(You no longer work towards {slug}.)" for slug in news.closed)]
    opened = [f"Your operator has opened a campaign.\n{_told(one)}" for one in news.opened]
    return [*opened, *(f"Your operator has closed the campaign {slug}: you no longer work towards it." for slug in news.closed)]


def _told(campaign: Campaign) -> str:
    lines = [f"{INDENT}{line}".rstrip() for line in clean(campaign.text).strip().split("\n")]
    return "\n".join([f"{campaign.slug}:", *lines])


def _short(campaign: Campaign) -> str:
    words = " ".join(clean(campaign.text).split())
    return words if len(words) <= SMALL_CHARACTERS else words[:SMALL_CHARACTERS] + "…"
