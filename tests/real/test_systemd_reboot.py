"""A power cut and an orderly reboot: what was asked is answered once, what was live is ended, and Minds are there by themselves."""

import threading
from collections.abc import Callable

import pytest

from tests.parts_present import require_part
from tests.real.parts.chat_api import held
from tests.real.parts.messages_api import Prose, call, prefix, scripted_messages_api
from tests.real.parts.scene import wait_until
from tests.real.parts.systemd_bed import Bed
from tests.real.parts.systemd_product import CLAUDE
from tests.real.parts.systemd_scene import DAEMONS, Household

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("systemd-lives"), pytest.mark.early]


def power_cut(bed: Bed) -> None:
    bed.kill()
    bed.boot()


def reboot(bed: Bed) -> None:
    bed.end()
    bed.boot()


@pytest.mark.parametrize("restart", [power_cut, reboot])
def test_after_a_reboot_pending_mail_is_answered_live_runs_are_ended_and_sessions_go_on(
    household: Household, restart: Callable[[Bed], None]
) -> None:
    her, other = household.new("ada"), household.new("bea")
    bob = household.person()
    for name in ("ada", "bea"):
        household.enable(name)
    room, quiet = household.talk("ada", bob, her), household.talk("bea", bob, other)
    bob.send(room, "first")
    bob.wait_text(room, her)
    bob.send(quiet, "first")
    bob.wait_text(quiet, other)
    (session,) = household.product.rows("ada", "SELECT id FROM session WHERE ended_at IS NULL")
    gate = threading.Event()
    household.api.script(held(gate, household.api.default))
    bob.send(room, "second")  # its turn is under way when the power goes
    household.api.wait_for(3)
    restart(household.bed)
    gate.set()
    bob.send(quiet, "while nobody was there")
    assert bob.wait_text(room, her, 2)[-1] == "re: second"
    assert bob.wait_text(quiet, other, 2)[-1] == "re: while nobody was there"
    assert [household.bed.state(daemon) for daemon in DAEMONS] == ["active"] * 3
    household.wait_gone("ada")
    assert bob.texts(room, her) == ["re: first", "re: second"]
    outcomes = [run["outcome"] for run in household.product.rows("ada", "SELECT outcome FROM run ORDER BY opened_at")]
    assert None not in outcomes
    assert ("dead" if restart is power_cut else "stopped") in outcomes
    turns = household.product.rows("ada", "SELECT session_id, state FROM turn ORDER BY opened_at")
    assert turns[-1]["state"] == "replied"
    refreshed = household.product.rows("ada", "SELECT end_reason FROM session WHERE id = ?", session["id"])
    assert turns[-1]["session_id"] == session["id"] or refreshed[0]["end_reason"], "it goes on, or says why it does not"


def test_a_self_that_worked_when_the_power_went_goes_on(household: Household) -> None:
    require_part("claude")
    require_part("bubblewrap")
    with scripted_messages_api(Prose("I wrote it.")) as works:
        bob = household.person()
        values = {"enabled": True, "base_url": works.url, "credential": "api-key", "cli": f"{CLAUDE}/claude", "linger_s": 0.0}
        her = household.new("ada", self=values, people={"operators": [bob.user_id]}, spend={"day_usd": 100.0})
        household.self_key("ada", "sk-ant-made-up")
        household.enable("ada")
        household.talk("ada", bob, her)
        household.product.mind("dial", "ada", "--base-run-usd", "20")
        works.script(call("Bash", prefix(20_000), command="echo a > a.txt; sleep 600"))
        household.product.mind("run", "start", "ada", "--brief", "Write it.", "--workspace", "site")
        file = "/var/lib/mind/ada/work/site/a.txt"
        wait_until("its first file", lambda: household.bed.path(file).exists(), 60)
        power_cut(household.bed)
        assert household.bed.path(file).read_text() == "a\n"
        done = "SELECT outcome, result FROM run WHERE kind = 'self_run' AND ended_at IS NOT NULL ORDER BY opened_at"
        rows = wait_until("the work to be done", lambda: r if len(r := household.product.rows("ada", done)) >= 2 else None, 90)
        assert [row["outcome"] for row in rows] == ["dead", "result"]
