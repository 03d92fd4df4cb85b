"""Five users share a Mind: modes of what is made, and where each one finds its secrets."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from mind_body.config import find_home
from mind_body.errors import CredentialError
from mind_body.heartbeat.house import keys_of
from mind_body.home import directory_home, system_home
from mind_body.host import credentials
from mind_body.host.liveness import take_hold
from mind_body.host.secrets import read_secret
from mind_body.mind.records import RunKind
from mind_body.mind.store import open_mind
from mind_body.shared import make_shared, open_shared

HANDED = Path("/run/credentials/mind-mouth.service")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o022, 0o077])
def shared(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A directory as `mind install` makes /var/lib/mind, and somebody with a umask of his own."""
    directory = tmp_path / "state"
    directory.mkdir()
    directory.chmod(0o2750)
    before = os.umask(request.param)
    yield directory
    os.umask(before)


def test_a_mind_made_in_a_shared_place_is_open_to_the_group_whatever_the_umask(shared: Path) -> None:
    open_mind(shared / "ada" / "mind.db", create=True).close()
    assert mode(shared / "ada") == 0o2770
    mind = open_mind(shared / "ada" / "mind.db")
    with mind.write():
        assert {path.name: mode(path) for path in (shared / "ada").iterdir()} == dict.fromkeys(
            ("mind.db", "mind.db-wal", "mind.db-shm", "mind.db.migrate-lock"), 0o660
        )
    mind.close()


def test_a_lock_in_a_shared_place_can_be_taken_by_the_next_user(shared: Path) -> None:
    make_shared(shared / "run")
    hold = take_hold(shared / "run" / "mouth.lock", "holder")
    assert hold is not None
    assert mode(shared / "run" / "mouth.lock") == 0o660


def test_what_was_closed_by_its_owner_stays_closed(shared: Path) -> None:
    make_shared(shared / "run")
    path = shared / "run" / "mouth.lock"
    path.touch(0o600)
    os.close(open_shared(path))
    assert mode(path) == 0o600


def test_a_mind_in_a_home_is_its_owners(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    open_mind(tmp_path / "ada" / "mind.db", create=True).close()
    assert not mode(tmp_path / "ada" / "mind.db") & (stat.S_IWGRP | stat.S_IWOTH)


def test_secrets_of_the_mouth_and_of_the_lease_lie_apart_under_systemd_and_together_in_a_home(tmp_path: Path) -> None:
    home, host = directory_home(tmp_path, tmp_path / "r"), system_home()
    assert home.matrix_secret("ada", "password") == tmp_path / "credentials" / "ada.matrix-password"
    assert home.model_key("ada").parent == home.self_key("ada").parent == home.matrix_session("ada").parent
    assert host.matrix_secret("ada", "token") == Path("/etc/mind/credentials/matrix/ada.matrix-token")
    assert host.self_key("ada") == Path("/etc/mind/credentials/model/ada.self-key")
    assert host.matrix_session("ada") == Path("/var/lib/mind/mouth.d/ada.matrix-session")


def test_a_unit_finds_the_copies_that_it_was_handed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mind_body.config.environment", {"CREDENTIALS_DIRECTORY": str(HANDED)})
    home = find_home(None)
    assert home.matrix_secret("ada", "password") == HANDED / "matrix_ada.matrix-password"
    assert home.model_key("ada") == HANDED / "model_ada.model-key"
    assert home.matrix_session("ada").parent == Path("/var/lib/mind/mouth.d")


def test_in_a_home_what_was_handed_to_somebody_else_is_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("mind_body.config.environment", {"CREDENTIALS_DIRECTORY": str(HANDED)})
    assert find_home(str(tmp_path)).model_key("ada") == tmp_path / "credentials" / "ada.model-key"


def test_a_copy_that_an_acl_opens_to_its_unit_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "matrix_ada.matrix-password"
    path.write_text("hers")
    path.chmod(0o440)
    with pytest.raises(CredentialError, match="chmod 600"):
        read_secret(path)
    monkeypatch.setattr(credentials, "environment", {"CREDENTIALS_DIRECTORY": str(tmp_path)})
    assert read_secret(path) == "hers"


def test_a_secret_that_was_not_handed_is_told_with_the_operators_file_and_the_unit_to_restart(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(credentials, "environment", {"CREDENTIALS_DIRECTORY": str(tmp_path)})
    with pytest.raises(CredentialError) as told:
        read_secret(tmp_path / "model_ada.model-key")
    assert "/etc/mind/credentials/model/ada.model-key" in str(told.value)
    assert "systemctl restart mind-lease" in str(told.value)


def test_what_no_heartbeat_may_see_is_stood_for_by_the_start_of_the_lease() -> None:
    assert keys_of(system_home(), "ada", RunKind.SELF_RUN) == (Path("/run/mind/lease.lock"),)
