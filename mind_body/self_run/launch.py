"""Rule: how the `claude` CLI is started for a Self: its command line, its environment (design §8, wire.md §5 and §1).

1. It has the CLI's tools and asks nobody for permission: the sandbox is what holds it. Its workspace is writable, and what the
   operator bound so; everything else of the host is read-only or not there.
2. The environment is built from nothing. The key in it is the gateway's, of the same kind as the real one; it opens something only
   while a run is live, up to the run's cap.
3. The CLI's own budget is a second belt, the gateway's cap is the first. It counts per process and tells the model what is left.
4. Paths inside are the same on every host: the CLI tells the model its directory.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mind_body.host.sandbox import Sandbox, render_bwrap
from mind_body.model.claude_launch import PROGRAM, render_basic_env
from mind_body.model.passage import KeyKind

HOME = "/home/self"
CONFIG = f"{HOME}/.claude"
WORK = "/work"
SETTINGS_FILE = "mind-body-settings.json"
DISALLOWED = "AskUserQuestion,ScheduleWakeup,SendMessage,ListAgents"
"""Tools that wait for a person at a terminal, or act outside the run."""
OUTPUT_CAP = 16_000
"""Most tokens of one answer. A call is reserved with its whole cap before it is made, and a cap of 64,000, which some models have,
is more than many a run may cost."""
LEAST_USD = 0.000_001
"""The CLI takes no budget of 0; the gateway does, and lets nothing pass."""
SWITCHES = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_DISABLE_TERMINAL_TITLE": "1",
    "CLAUDE_CODE_STARTUP_FAILURE_RESULTS": "1",
    "DISABLE_AUTO_COMPACT": "1",
    "CLAUDE_CODE_TOTAL_TOKENS_REMINDER_AFTER_USER_TURN": "0",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(OUTPUT_CAP),
    "CLAUDE_CODE_DISABLE_CRON": "1",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
}


@dataclass(frozen=True, slots=True)
class SelfLaunch:
    """Everything that one start depends on."""

    binary: str
    config_dir: str
    """The session's own, outside."""
    work_dir: str
    """The workspace, outside."""
    workspace: str
    """Its name."""
    model: str
    session_id: str
    resume: bool
    max_turns: int
    run_cap_usd: float
    gateway_url: str
    key_kind: KeyKind
    key: str = field(repr=False)
    readable: Mapping[str, str] = field(default_factory=dict)
    """Further paths outside to paths inside."""
    writable: Mapping[str, str] = field(default_factory=dict)
    sandboxed: bool = True


def render_argv(launch: SelfLaunch) -> list[str]:
    """The whole command line, sandbox included. It holds no secret."""
    config = CONFIG if launch.sandboxed else launch.config_dir
    claude = [
        PROGRAM if launch.sandboxed else launch.binary,
        "-p",
        "--input-format=stream-json",
        "--output-format=stream-json",
        "--verbose",
        "--include-partial-messages",
        *([f"--model={launch.model}"] if launch.model else []),
        f"--max-turns={launch.max_turns}",
        f"--max-budget-usd={max(launch.run_cap_usd, LEAST_USD):.6f}",
        "--permission-mode=bypassPermissions",
        "--permission-prompts=none",
        "--setting-sources=user",
        f"--settings={config}/{SETTINGS_FILE}",
        "--strict-mcp-config",
        f"--disallowedTools={DISALLOWED}",
        f"--{'resume' if launch.resume else 'session-id'}={launch.session_id}",
    ]
    if not launch.sandboxed:
        # util-linux; the kernel then does what bwrap's --die-with-parent does, for the one process.
        return ["setpriv", "--pdeathsig=KILL", "--", *claude]
    inside = f"{WORK}/{launch.workspace}"
    box = Sandbox(
        home=HOME,
        cwd=inside,
        readable={launch.binary: PROGRAM, **launch.readable},
        writable={launch.config_dir: CONFIG, launch.work_dir: inside, **launch.writable},
    )
    return render_bwrap(box, claude)


def render_env(launch: SelfLaunch) -> dict[str, str]:
    """The whole environment."""
    held = launch.sandboxed
    basic = render_basic_env(
        home=HOME if held else launch.work_dir,
        config_dir=CONFIG if held else launch.config_dir,
        gateway_url=launch.gateway_url,
        key_kind=launch.key_kind,
        key=launch.key,
    )
    return basic | SWITCHES


def parse_binds(binds: Sequence[str]) -> dict[str, str]:
    """`/outside` or `/outside:/inside`, as in the settings, by the path outside."""
    pairs = [bind.partition(":") for bind in binds]
    return {outside: inside or outside for outside, _, inside in pairs}


def render_control(request_id: str, subtype: str, **fields: Any) -> dict[str, Any]:
    """A control request; it works at any time."""
    return {"type": "control_request", "request_id": request_id, "request": {"subtype": subtype, **fields}}
