"""Door: whether a Mind waits for something that no time brings: her operator's hand, or a dial that lets one run cost more."""

from collections.abc import Sequence

from mind_body.cli.finding import Check
from mind_body.cli.minds import opened
from mind_body.cli.render import render_plain
from mind_body.clock import now_ms
from mind_body.config import read_host_config
from mind_body.control.govern import RUN_CAP, House, is_mended
from mind_body.errors import MindBodyError
from mind_body.heartbeat.house import read_house
from mind_body.home import Home
from mind_body.mind.records import Pause, RunKind
from mind_body.mind.runs import read_pauses
from mind_body.mind.wakes import pauses_of
from mind_body.model.pausing import OPERATOR_WAIT_MS
from mind_body.settings import HostConfig, MindConfig

HALVES = ((RunKind.PERSONA_TURN, "turns", "she takes no turns"), (RunKind.SELF_RUN, "work", "her Self does no work"))


def check_pauses(home: Home, name: str, config: MindConfig) -> list[Check]:
    """Only what is wrong, and where nothing that may mend it was changed since."""
    try:
        host = read_host_config(home)
    except MindBodyError:
        host = HostConfig()  # a file that cannot be used is another check's
    try:
        with opened(home, name) as mind, mind.read() as tx:
            pauses = read_pauses(tx)
    except MindBodyError:
        return []
    found: list[Check] = []
    for kind, word, what in HALVES:
        whole, apart = pauses_of(pauses, kind)
        house = read_house(home, name, kind, config, host, paused=bool(whole or apart))
        found += _faults(f"{name}: {word}", what, whole, house)
        if kind is RunKind.PERSONA_TURN:
            found += _run_cap(name, apart, house)
    return found


def _faults(check: str, what: str, pauses: Sequence[Pause], house: House) -> list[Check]:
    now, name = now_ms(), check.partition(":")[0]
    fix = f"mend that; `mind brake release {name}` then tries it at once"
    return [
        Check(check, ok=False, detail=f"{what}: {one.reason}", fix=fix)
        for one in pauses
        if one.cause == "fault" and one.until > now and one.until - one.since >= OPERATOR_WAIT_MS and not is_mended(one, house, now)
    ]


def _run_cap(name: str, apart: Sequence[tuple[str, Pause]], house: House) -> list[Check]:
    """Where a call has been refused that no run could pay for, and the dial was not turned since."""
    now = now_ms()
    found = [(where, one.reason) for where, one in apart if one.cause == RUN_CAP and not is_mended(one, house, now)]
    fix = f"`mind dial {name} --base-run-usd …`: what one run may cost is that times heat"
    detail = "; ".join(f"she cannot answer in {render_plain(where)}: {reason}" for where, reason in found)
    return [Check(f"{name}: one run", ok=False, detail=detail, fix=fix)] if found else []
