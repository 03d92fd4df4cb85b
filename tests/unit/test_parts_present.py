import pytest

from tests import parts_present
from tests.parts_present import Part, require_part


def test_a_missing_part_is_a_skip_with_a_hint_and_a_failure_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(parts_present.PARTS, "unicorn", Part(lambda: None, "look in the forest"))
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="unicorn is not here: look in the forest"):
        require_part("unicorn")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="unicorn is not here"):
        require_part("unicorn")


def test_a_part_that_is_here_is_answered_with_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(parts_present.PARTS, "horse", Part(lambda: "/stable/horse", ""))
    assert require_part("horse") == "/stable/horse"
