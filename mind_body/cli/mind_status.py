"""Door: one Mind's status, as `mind status --json` has it. A documented key never changes its meaning."""

from typing import Any, TypedDict

from mind_body.cli.last import find_last
from mind_body.cli.minds import opened
from mind_body.cli.unit_states import States
from mind_body.cli.why_facts import Eyes
from mind_body.clock import now_ms
from mind_body.config import read_mind_config
from mind_body.control.effective import Held
from mind_body.control.files import read_control
from mind_body.control.govern import window_of
from mind_body.errors import MindBodyError
from mind_body.host.units import DAEMONS, HALVES
from mind_body.mind.place_reports import read_busy_places
from mind_body.mind.questions import read_open_questions
from mind_body.mind.records import Pause, Run, RunKind
from mind_body.mind.reports import read_figures
from mind_body.mind.runs import recent_runs
from mind_body.money import parse_usd
from mind_body.settings import HostConfig

DEAF_AFTER_MS = 900_000
"""The mouth stores an empty answer's position every ten minutes: after a quarter of an hour she hears nobody."""


class Status(TypedDict):
    """One Mind in `mind status --json`."""

    name: str
    brake: str
    reason: str
    live_run: dict[str, Any] | None
    self_run: dict[str, Any] | None
    waiting_work: int
    pending: int
    unsent: int
    prefix_tokens: int
    ceiling_tokens: int
    spend_today_micro_usd: int
    spend_month_micro_usd: int
    day_cap_micro_usd: int
    month_cap_micro_usd: int
    open_questions: int
    spent_places: list[dict[str, str | None]]
    units: dict[str, str]
    last_reason: str
    last_at: int | None
    pauses: list[dict[str, Any]]
    encrypted_rooms: list[str]
    heard_until: int | None
    fault: str | None


def read_status(states: States, host: HostConfig, name: str) -> Status:
    """A mind file that cannot be read is a fault of its own and hides no other Mind."""
    control = read_control(states.home, name)
    units = {organ: states.of_daemon(organ) for organ in DAEMONS} | {half: states.of_half(half, name) for half in HALVES}
    status = Status(
        name=name,
        brake="held" if isinstance(control, Held) else "released",
        reason=control.reason if isinstance(control, Held) else "",
        live_run=None,
        self_run=None,
        waiting_work=0,
        pending=0,
        unsent=0,
        prefix_tokens=0,
        ceiling_tokens=0,
        spend_today_micro_usd=0,
        spend_month_micro_usd=0,
        day_cap_micro_usd=0,
        month_cap_micro_usd=0,
        open_questions=0,
        spent_places=[],
        units=units,
        last_reason=f"held: {control.reason}" if isinstance(control, Held) else "",
        last_at=None,
        pauses=[],
        encrypted_rooms=[],
        heard_until=None,
        fault=None,
    )
    try:
        _fill_in(status, states, host, name)
    except MindBodyError as error:
        status["fault"] = str(error)
    return status


def _fill_in(status: Status, states: States, host: HostConfig, name: str) -> None:
    home = states.home
    config, now = read_mind_config(home, name), now_ms()
    window = window_of(host, now)
    with opened(home, name) as mind, mind.read() as tx:
        figures = read_figures(tx, window.day_start)
        asked, places = read_open_questions(tx), read_busy_places(tx, config.persona.loop_turns)
        known = Eyes(home, host, name).read(tx, config, now, beats=False)
        ended = [run for kind in (RunKind.PERSONA_TURN, RunKind.SELF_RUN) for run in recent_runs(tx, kind, 1)]
    last, standing = find_last(known, ended), known.wake.standing
    status["last_reason"], status["last_at"] = last.reason, last.at
    status["live_run"] = _render_run(figures.live_run)
    status["self_run"] = _render_run(figures.self_run)
    status["waiting_work"], status["pending"], status["unsent"] = figures.waiting_work, figures.pending, figures.unsent
    status["prefix_tokens"], status["ceiling_tokens"] = figures.prefix_tokens, figures.ceiling_tokens
    status["spend_today_micro_usd"], status["spend_month_micro_usd"] = standing.spent_day, standing.spent_month
    status["day_cap_micro_usd"] = parse_usd(config.spend.day_usd) * (1 + standing.extensions_day)
    status["month_cap_micro_usd"] = parse_usd(config.spend.month_usd) * (1 + standing.extensions_month)
    status["open_questions"] = len(asked)
    status["spent_places"] = [{"room": place.room_id, "thread": place.thread or None} for place in places]
    status["pauses"] = [_render_pause(pause) for pause in figures.pauses if pause.until > now]
    status["encrypted_rooms"] = list(figures.encrypted_rooms)
    status["heard_until"] = figures.heard_until


def _render_pause(pause: Pause) -> dict[str, Any]:
    return {"cause": pause.cause, "until": pause.until, "reason": pause.reason}


def _render_run(run: Run | None) -> dict[str, Any] | None:
    if run is None:
        return None
    return {
        "id": run.id,
        "kind": run.kind.value,
        "cause": run.cause,
        "reason": run.reason,
        "opened_at": run.opened_at,
        "held": run.holder is not None,
    }
