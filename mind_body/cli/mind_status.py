"""Door: one Mind's status, as `mind status --json` has it. A documented key never changes its meaning."""

from typing import Any, TypedDict

from mind_body.cli.minds import opened
from mind_body.clock import now_ms
from mind_body.config import read_mind_config
from mind_body.control.effective import Held
from mind_body.control.files import read_control
from mind_body.control.govern import window_of
from mind_body.errors import MindBodyError
from mind_body.home import Home
from mind_body.host.liveness import read_holder
from mind_body.mind.place_reports import read_busy_places
from mind_body.mind.questions import read_open_questions
from mind_body.mind.records import Pause, Run, RunKind
from mind_body.mind.reports import read_figures
from mind_body.mind.wakes import read_standing
from mind_body.money import parse_usd
from mind_body.settings import HostConfig

DAEMONS = ("mouth", "heartbeat", "lease")
"""One per host, for all its Minds."""
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
    pauses: list[dict[str, Any]]
    encrypted_rooms: list[str]
    heard_until: int | None
    fault: str | None


def read_status(home: Home, host: HostConfig, name: str) -> Status:
    """A mind file that cannot be read is a fault of its own and hides no other Mind."""
    control = read_control(home, name)
    units = {organ: read_unit(home, organ, "stopped") for organ in DAEMONS}
    units |= {half: read_unit(home, half, "idle", name) for half in ("persona", "self")}
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
        pauses=[],
        encrypted_rooms=[],
        heard_until=None,
        fault=None,
    )
    try:
        _fill_in(status, home, host, name)
    except MindBodyError as error:
        status["fault"] = str(error)
    return status


def read_unit(home: Home, organ: str, otherwise: str, name: str | None = None) -> str:
    """Whether an organ runs, by its lock."""
    return otherwise if read_holder(home.lock_file(organ, name)) is None else "running"


def _fill_in(status: Status, home: Home, host: HostConfig, name: str) -> None:
    config, now = read_mind_config(home, name), now_ms()
    window = window_of(host, now)
    with opened(home, name) as mind, mind.read() as tx:
        figures = read_figures(tx, window.day_start)
        standing = read_standing(tx, RunKind.PERSONA_TURN, window)
        asked, places = read_open_questions(tx), read_busy_places(tx, config.persona.loop_turns)
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
