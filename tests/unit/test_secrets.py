from pathlib import Path

import pytest

from mind_body.errors import CredentialError
from mind_body.host.secrets import read_secret, write_secret


def test_what_was_written_is_read_back_and_nobody_else_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "credentials" / "ada.matrix-password"
    write_secret(path, "s3cret")
    assert read_secret(path) == "s3cret"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_a_leftover_part_file_with_a_wide_mode_does_not_widen_the_secret(tmp_path: Path) -> None:
    (tmp_path / "token.part").touch(mode=0o644)
    write_secret(tmp_path / "token", "s3cret")
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o660, 0o644])
def test_a_secret_that_others_may_touch_is_refused_with_the_way_out(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "token"
    write_secret(path, "s3cret")
    path.chmod(mode)
    with pytest.raises(CredentialError, match="chmod 600") as caught:
        read_secret(path)
    assert "s3cret" not in str(caught.value)


def test_a_missing_an_empty_and_a_strange_secret_each_get_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(CredentialError, match="does not exist"):
        read_secret(tmp_path / "none")
    write_secret(tmp_path / "empty", "  ")
    with pytest.raises(CredentialError, match="is empty"):
        read_secret(tmp_path / "empty")
    with pytest.raises(CredentialError, match="not a plain file"):
        read_secret(Path("/dev/null"))
