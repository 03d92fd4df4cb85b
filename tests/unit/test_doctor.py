"""`mind doctor` on homes that are broken in one place each: that place is named, with a way out, and nothing else is."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mind_body.home import Home
from mind_body.mind.store import open_mind
from tests.homes import call, make_home


def _checks(home: Home) -> dict[str, dict[str, object]]:
    told = call(home, "doctor", "--json")
    checks = {check["name"]: check for check in json.loads(told.stdout)["checks"]}
    assert told.exit_code == (0 if all(check["ok"] for check in checks.values()) else 78)
    assert all(set(check) == {"name", "ok", "detail", "fix"} for check in checks.values())
    return checks


def _corrupt(home: Home) -> None:
    home.mind_db("ada").write_bytes(b"\0" * 8192)


def _newer(home: Home) -> None:
    mind = open_mind(home.mind_db("ada"))
    with mind.write() as tx:
        tx.execute("PRAGMA user_version=999")
    mind.close()


def _typo(home: Home) -> None:
    home.mind_file("ada").write_text(home.mind_file("ada").read_text().replace("# timeout_s = 600.0", "timeuot_s = 1.0"))


def _host_typo(home: Home) -> None:
    home.config_file.write_text("look = 3\n")


def _open_secret(home: Home) -> None:
    (home.credentials / "ada.matrix-password").chmod(0o644)


def _no_persona(home: Home) -> None:
    home.persona_file("ada").unlink()


def _writable_brake(home: Home) -> None:
    (home.control_dir("ada") / "brake.toml").chmod(0o666)


def _hot_dial(home: Home) -> None:
    (home.control_dir("ada") / "dial.toml").write_text("heat = 99.0\n")


def _misspelt_brake(home: Home) -> None:
    (home.control_dir("ada") / "brake.toml").write_text('state = "releasd"\n')


def _misspelt_prices(home: Home) -> None:
    (home.etc / "prices.toml").write_text("as_off = 3\n")


def _encrypted_room(home: Home) -> None:
    mind = open_mind(home.mind_db("ada"))
    with mind.write() as tx:
        tx.execute(
            "INSERT INTO room (room_id, number, membership, conversation, encrypted, name) "
            "VALUES ('!a', 1, 'joined', 'room:!a', 1, 'Secrets')"
        )
    mind.close()


BROKEN = [
    (_corrupt, "ada: mind", "ada/mind.db", "mind restore ada"),
    (_newer, "ada: mind", "written by a newer mind-body", "mind restore ada"),
    (_typo, "ada: configuration", "did you mean `timeout_s`?", "edit"),
    (_host_typo, "configuration", "did you mean `look_s`?", "edit"),
    (_open_secret, "ada: credentials", "chmod 600", "mend"),
    (_no_persona, "ada: persona", "ada.md", "write"),
    (_writable_brake, "ada: brake and dial", "chmod go-w", "as it says"),
    (_misspelt_brake, "ada: brake and dial", "'held' or 'released'", "mind brake hold ada"),
    (_misspelt_prices, "prices", "did you mean `as_of`?", "prices.toml"),
    (_hot_dial, "ada: brake and dial", "heat", "mind dial ada"),
    (_encrypted_room, "ada: encrypted rooms", "Secrets", "Element"),
]


@pytest.mark.parametrize(("break_it", "name", "detail", "fix"), BROKEN, ids=[case[0].__name__ for case in BROKEN])
def test_what_is_broken_is_named_with_a_way_out(
    tmp_path: Path, break_it: Callable[[Home], None], name: str, detail: str, fix: str
) -> None:
    home = make_home(tmp_path, "ada", "bea", released=True)
    break_it(home)
    checks = _checks(home)
    assert not checks[name]["ok"]
    assert detail in str(checks[name]["detail"])
    assert fix in str(checks[name]["fix"])
    others = {other for other, check in checks.items() if not check["ok"]} - {name}
    # Nobody listens at the homeserver of these homes; and an open secret is not used, also for the login.
    assert others <= {"ada: homeserver", "bea: homeserver"}


def test_a_brake_that_the_operator_holds_is_well_and_says_how_to_release_it(tmp_path: Path) -> None:
    check = _checks(make_home(tmp_path, "ada"))["ada: brake and dial"]
    assert check["ok"]
    assert "mind brake release ada" in str(check["fix"])


def test_an_openai_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    home = make_home(tmp_path, "ada", model={"provider": "openai", "base_url": "http://127.0.0.1:9/v1", "model": "m"})
    check = _checks(home)["ada: model"]
    assert not check["ok"]
    assert "127.0.0.1:9" in str(check["detail"])


def test_a_model_cli_that_is_not_there_is_named(tmp_path: Path) -> None:
    home = make_home(tmp_path, "ada", model={"provider": "claude", "cli": "/nowhere/claude", "sandbox": False})
    check = _checks(home)["ada: model"]
    assert not check["ok"]
    assert "/nowhere/claude" in str(check["detail"])


def test_the_fix_of_a_broken_dial_mends_it(tmp_path: Path) -> None:
    home = make_home(tmp_path, "ada", released=True)
    _hot_dial(home)
    assert call(home, "dial", "ada").exit_code == 78
    assert call(home, "dial", "ada", "--heat", "1").exit_code == 0
    assert _checks(home)["ada: brake and dial"]["ok"]


def test_an_empty_home_is_well(tmp_path: Path) -> None:
    home = make_home(tmp_path)
    assert all(check["ok"] for check in _checks(home).values())
    assert not (tmp_path / "home").exists(), "looking changes nothing"
