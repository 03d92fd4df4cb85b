"""Loop: what a Self is at, for its unit's status line. Anybody on the host may read that, so not a word of the work is in it."""

from dataclasses import replace

from mind_body.clock import now_ms
from mind_body.control.govern import window_of
from mind_body.host.gauge import Gauge, render_gauge
from mind_body.mind.spent import read_spent
from mind_body.mind.work_records import Progress
from mind_body.self_run.place import Place
from mind_body.self_run.reuse import warm_ms


def show_run(place: Place, progress: Progress, *, flushing: bool) -> None:
    """How its run goes."""
    doing = "Writing its hand-off" if flushing else "Working" if progress.turns else "Starting"
    _show(place, Gauge(doing, progress.turns, progress.prefix_tokens, progress.ceiling_tokens))


def show_waiting(place: Place) -> None:
    """Its child is kept for the next brief."""
    worker = place.bench.worker
    if worker is None:
        return
    used_at, prefix = worker.seat.main.answered_at, worker.meter.prefix_tokens
    warm = 0 if used_at is None else used_at + warm_ms(place.config.self.credential) - now_ms()
    window = worker.seen.window_tokens
    ceiling = 0 if window is None else place.constants.ceiling(window)
    _show(place, Gauge("Waiting for more work", worker.meter.requests, prefix, ceiling, warm))


def _show(place: Place, gauge: Gauge) -> None:
    notify = place.post.notify
    if not notify.listened:
        return
    with place.mind.read() as tx:
        today = read_spent(tx, window_of(place.post.host, now_ms()).day_start)
    notify.status(render_gauge(replace(gauge, today_micro_usd=today)))
