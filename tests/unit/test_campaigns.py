"""Campaigns over a real mind: open → closed, and a slug is used once."""

from pathlib import Path

from mind_body.mind.campaigns import close_campaign, open_campaign, read_campaign, read_campaigns
from tests.builders import NOW, make_campaign, make_mind


def test_a_campaign_is_opened_once_and_closed_once_and_its_name_is_never_used_again(tmp_path: Path) -> None:
    mind = make_mind(tmp_path)
    with mind.write() as tx:
        spring, autumn = make_campaign("spring"), make_campaign("autumn", opened_at=NOW - 1)
        assert open_campaign(tx, spring)
        assert not open_campaign(tx, make_campaign("spring", text="Something else."))
        assert open_campaign(tx, autumn)
        assert read_campaigns(tx) == read_campaigns(tx, open_only=True) == [spring, autumn], "as they were opened"
        assert read_campaign(tx, "spring") == spring
        assert read_campaign(tx, "summer") is None
        assert not close_campaign(tx, "summer", NOW)
        assert close_campaign(tx, "spring", NOW + 1)
        assert not close_campaign(tx, "spring", NOW + 2)
        closed = make_campaign("spring", closed_at=NOW + 1)
        assert not open_campaign(tx, spring)
        assert read_campaigns(tx) == [closed, autumn]
        assert read_campaigns(tx, open_only=True) == [autumn]
    mind.close()
