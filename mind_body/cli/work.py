"""Rule: how a run of a Self looks: as JSON for machines, as a row or a page for people. A documented key keeps its meaning."""

from typing import Any

from mind_body.cli.render import render_plain, render_tokens, render_wait
from mind_body.clock import render_utc
from mind_body.mind.records import Run
from mind_body.mind.report_records import WorkReport
from mind_body.mind.work_records import Compaction, Progress
from mind_body.money import render_usd

HEAD = ("MIND", "RUN", "STATE", "OPENED", "FOR", "CONTEXT", "COST", "BRIEF", "WHY")
BRIEF_SHOWN = 60
BAR = 24


def render_json(name: str, report: WorkReport) -> dict[str, Any]:
    run, work, progress, handoff = report.run, report.follow_up, report.progress, report.handoff
    turns, cost = _spent(report)
    return {
        "mind": name,
        "id": run.id,
        "state": render_state(run),
        "cause": run.cause,
        "opened_at": run.opened_at,
        "ended_at": run.ended_at,
        "outcome": run.outcome,
        "reason": run.end_reason or run.reason,
        "turns": turns,
        "cost_micro_usd": cost,
        "model_usage": run.model_usage,
        "result": run.result,
        "work": None
        if work is None
        else {
            "id": work.id,
            "state": work.state.value,
            "brief": work.brief,
            "asked_by": work.asked_by,
            "asked_in": work.asked_in,
            "room": work.room_id,
            "conversation": work.conversation,
            "workspace": work.workspace,
            "campaign": work.campaign,
            "continues": work.continues,
        },
        "progress": None
        if progress is None
        else {
            "doing": progress.doing,
            "prefix_tokens": progress.prefix_tokens,
            "ceiling_tokens": progress.ceiling_tokens,
            "window_tokens": progress.window_tokens,
            "at": progress.at,
        },
        "handoff": None
        if handoff is None
        else {"origin": handoff.origin, "cut": handoff.cut, "text": handoff.text, "at": handoff.at},
        "steers": [{"kind": kind, "sender": sender, "state": state} for kind, sender, state in report.steers],
    }


def _spent(report: WorkReport) -> tuple[int, int]:
    """Requests and micro-USD so far: of a run that is live, what it last showed."""
    run, progress = report.run, report.progress
    if run.ended_at is not None or progress is None:
        return run.turns, run.cost_micro_usd
    return max(run.turns, progress.turns), max(run.cost_micro_usd, progress.cost_micro_usd)


def render_state(run: Run) -> str:
    """`opened`, `working` or `ended`."""
    if run.ended_at is not None:
        return "ended"
    return "opened" if run.holder is None else "working"


def render_row(name: str, report: WorkReport, now: int) -> list[str]:
    run, work, progress = report.run, report.follow_up, report.progress
    lasted = render_wait((now if run.ended_at is None else run.ended_at) - run.opened_at)
    context = f"{render_tokens(progress.prefix_tokens)}/{render_tokens(progress.ceiling_tokens)}" if progress else "-"
    brief = " ".join(render_plain(work.brief).split()) if work else "-"
    return [
        name,
        run.id,
        run.outcome or render_state(run),
        render_utc(run.opened_at),
        lasted,
        context,
        render_usd(_spent(report)[1]),
        brief if len(brief) <= BRIEF_SHOWN else brief[:BRIEF_SHOWN] + "…",
        run.end_reason or run.reason,
    ]


def render_page(name: str, report: WorkReport, now: int) -> str:
    """Everything of one run, a line per fact."""
    run, work, progress, handoff = report.run, report.follow_up, report.progress, report.handoff
    ended = run.ended_at is not None
    turns, cost = _spent(report)
    lines = [
        ("run", f"{run.id} of {name}"),
        ("state", f"{run.outcome}: {run.end_reason}" if ended else f"{render_state(run)} ({run.reason})"),
        ("opened", f"{render_utc(run.opened_at)}, {render_wait((run.ended_at or now) - run.opened_at)}{'' if ended else ' ago'}"),
    ]
    if work is not None:
        where = f"{work.room_id} ({work.conversation})"
        lines += [("brief", render_plain(work.brief)), ("asked by", f"{work.asked_by} in {where}"), ("workspace", work.workspace)]
        lines += [("campaign", work.campaign)] if work.campaign else []
        lines += [("goes on from", work.continues)] if work.continues else []
        lines += [("work", f"{work.state.value}{': ' + work.why if work.why else ''}")]
    if progress is not None:
        lines += [("doing", render_plain(progress.doing)), ("context", render_bar(progress))]
    lines += [("cost", f"{render_usd(cost)} in {turns} request{'' if turns == 1 else 's'}")]
    lines += [("", f"{model}: {_render_usage(used)}") for model, used in sorted(run.model_usage.items())]
    lines += [("steered", f"{kind} by {sender} ({state})") for kind, sender, state in report.steers]
    lines += [("compacted", _render_compaction(one)) for one in report.compactions]
    lines += [("result", render_plain(run.result))] if run.result else []
    if handoff is not None:
        lines += [(f"hand-off ({handoff.origin}{', cut' if handoff.cut else ''})", render_plain(handoff.text))]
    return "\n".join(f"{label:<13} {text}" for label, text in lines)


def render_bar(progress: Progress) -> str:
    """How full its context is: the newest request's prefix against the ceiling."""
    share = min(progress.prefix_tokens / progress.ceiling_tokens, 1.0) if progress.ceiling_tokens else 0.0
    full = round(share * BAR)
    figures = f"{render_tokens(progress.prefix_tokens)} of {render_tokens(progress.ceiling_tokens)}"
    return f"[{'#' * full}{'.' * (BAR - full)}] {figures}"


def render_watch(run: Run, progress: Progress | None, now: int) -> str:
    """One line of `mind run watch`."""
    lasted = render_wait(now - run.opened_at)
    if progress is None:
        return f"{render_state(run)} for {lasted}"
    doing = " ".join(render_plain(progress.doing).split())
    return f"{render_bar(progress)}  {render_usd(progress.cost_micro_usd)}  {lasted}  {doing}"


def _render_compaction(one: Compaction) -> str:
    after = "an unknown size" if one.after_tokens is None else render_tokens(one.after_tokens)
    return (
        f"by the CLI itself ({render_plain(one.cause)}), from {render_tokens(one.before_tokens)} to {after}, {render_utc(one.at)}"
    )


def _render_usage(used: dict[str, int]) -> str:
    return ", ".join(f"{render_usd(count) if kind == 'cost_micro_usd' else render_tokens(count)} {kind.removesuffix('_tokens')}"
                     for kind, count in used.items())  # fmt: skip
