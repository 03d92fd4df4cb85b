"""What the doctor says of a Self's window."""

from typing import Any

import pytest

from mind_body.cli.self_checks import judge_window
from mind_body.errors import ConfigError
from mind_body.settings import SelfConfig


@pytest.mark.parametrize(
    ("window", "settings", "why"),
    [
        (127_999, {}, "a Self needs 128,000"),
        (200_000, {"ceiling_tokens": 20_000}, "asked for at 20,000 tokens"),
        (200_000, {"flush_headroom_tokens": 250_000}, "asked for at -50,000 tokens"),
    ],
)
def test_the_doctor_refuses_a_window_in_which_no_work_can_be_done(window: int, settings: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        judge_window(SelfConfig(**settings), window)


@pytest.mark.parametrize(("window", "ceiling"), [(128_000, "68,000"), (200_000, "140,000"), (1_000_000, "300,000")])
def test_the_doctor_says_where_the_flush_is_asked_for(window: int, ceiling: str) -> None:
    assert judge_window(SelfConfig(), window) == f"window {window:,} tokens, flush at {ceiling}"
