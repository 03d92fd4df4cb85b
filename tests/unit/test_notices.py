"""Notices: every key in every language, said once per cause."""

import string
from typing import Any

import pytest

from mind_body.matrix.events import SAID_KEY
from mind_body.matrix.notices import CATALOGUES, NoticeKey, render_notice

UNTIL = {"until": 1_800_000_000_000}
WORK = {"who": "@bob:x", "brief": "Tidy the notes."}
VALUES: dict[NoticeKey, dict[str, Any]] = {
    NoticeKey.LIMITED: UNTIL,
    NoticeKey.SPENT: UNTIL,
    NoticeKey.QUIET: UNTIL,
    NoticeKey.CEILING: {"who": "@bot:x", **UNTIL},
    NoticeKey.QUESTION: {"text": "The same work came to nothing three times."},
    NoticeKey.CONFIRM_START: WORK,
    NoticeKey.SELF_BEGINS: WORK,
    NoticeKey.SELF_DROPPED: {"count": 3},
    NoticeKey.SELF_PROGRESS: {"figures": "Bash, 3 min"},
    NoticeKey.SELF_OVER: {"figures": "Bash, 3 min"},
}


@pytest.mark.parametrize("language", CATALOGUES)
@pytest.mark.parametrize("key", NoticeKey)
def test_every_key_renders_in_every_language(language: str, key: NoticeKey) -> None:
    new = render_notice(language, key, "cause", "!r:x", **VALUES.get(key, {}))
    assert new.content["msgtype"] == "m.notice"
    assert new.content[SAID_KEY] == new.id
    assert new.content["m.mentions"] == {}
    assert not set("{}") & set(new.content["body"])
    named = {name for _, name, _, _ in string.Formatter().parse(CATALOGUES[language][key]) if name}
    assert named == set(VALUES.get(key, {}))


def test_the_same_cause_is_the_same_notice_and_another_is_not() -> None:
    def notice(**changes: str) -> str:
        values = {"key": NoticeKey.UNREACHABLE, "cause": "c", "room_id": "!r:x", **changes}
        return render_notice("en", NoticeKey(values["key"]), values["cause"], values["room_id"]).id

    assert notice() == notice()
    assert len({notice(), notice(cause="d"), notice(room_id="!s:x"), notice(key=NoticeKey.FAILED_MESSAGE)}) == 4


def test_a_limit_says_in_words_when_it_ends() -> None:
    assert "2027-01-15 08:00:00 UTC" in render_notice("en", NoticeKey.LIMITED, "x", "!r:x", until=1_800_000_000_000).content["body"]


def test_an_unknown_language_is_english() -> None:
    key = NoticeKey.CANNOT_READ_ENCRYPTED
    assert render_notice("xx", key, "c", "!r:x").content == render_notice("en", key, "c", "!r:x").content
