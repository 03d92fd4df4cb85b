"""Rule: how the `claude` CLI is started for a Persona: its command line, its environment, its files (wire.md §1 and §5).

1. Tool-less, without settings, memory, commands or attachments of anybody's: what she reads is what the turn says.
2. The environment is built from nothing. The key in it is the gateway's, of the same kind as the real one, because the kind decides
   which headers and cache marks the CLI sends; it is worth nothing elsewhere.
3. Inside the sandbox every path is the same for every Mind and host: the CLI tells the model its directory.
4. Long values go by file or by the `initialize` request: one argument is at most 131,071 bytes.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mind_body.host.sandbox import Sandbox, render_bwrap
from mind_body.model.passage import KeyKind

HOME = "/home/persona"
CONFIG = f"{HOME}/.claude"
WORK = f"{HOME}/quiet"
PROGRAM = "/opt/claude/claude"
KEEP_DAYS = 36_500
"""`cleanupPeriodDays`: the CLI deletes older transcripts at its start, and a cursor may be older than its 30 days."""
SETTINGS = json.dumps({"cleanupPeriodDays": KEEP_DAYS})
SETTINGS_FILE = "persona-settings.json"
RETRIES = 1
"""Of a failed request: two tries. What is wrong with the credential is declined at the second; waiting is the heartbeat's."""
SWITCHES = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_DISABLE_TERMINAL_TITLE": "1",
    "CLAUDE_CODE_STARTUP_FAILURE_RESULTS": "1",
    "DISABLE_AUTO_COMPACT": "1",
    "CLAUDE_CODE_TOTAL_TOKENS_REMINDER_AFTER_USER_TURN": "0",
    "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    "CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1",
    "CLAUDE_CODE_MAX_RETRIES": str(RETRIES),
    "MAX_STRUCTURED_OUTPUT_RETRIES": "1",
}


@dataclass(frozen=True, slots=True)
class Launch:
    """Everything that one start depends on."""

    binary: str
    config_dir: str
    """The Mind's own, outside."""
    work_dir: str
    """An empty directory, outside."""
    model: str
    session_id: str
    resume: bool
    prompt_file: str
    """Its name below the configuration directory."""
    output_cap: int
    gateway_url: str
    key_kind: KeyKind
    key: str = field(repr=False)
    sandboxed: bool = True


def render_argv(launch: Launch) -> list[str]:
    """The whole command line, sandbox included. It holds no secret."""
    config = CONFIG if launch.sandboxed else launch.config_dir
    claude = [
        PROGRAM if launch.sandboxed else launch.binary,
        "-p",
        "--input-format=stream-json",
        "--output-format=stream-json",
        "--verbose",
        f"--model={launch.model}",
        f"--system-prompt-file={config}/{launch.prompt_file}",
        "--tools=",
        "--strict-mcp-config",
        "--setting-sources=",
        f"--settings={config}/{SETTINGS_FILE}",
        "--disable-slash-commands",
        "--permission-prompts=none",
        f"--{'resume' if launch.resume else 'session-id'}={launch.session_id}",
    ]
    if not launch.sandboxed:
        # util-linux; the kernel then does what bwrap's --die-with-parent does.
        return ["setpriv", "--pdeathsig=KILL", "--", *claude]
    box = Sandbox(
        home=HOME,
        cwd=WORK,
        readable={launch.binary: PROGRAM},
        writable={launch.config_dir: CONFIG, launch.work_dir: WORK},
    )
    return render_bwrap(box, claude)


def render_env(launch: Launch) -> dict[str, str]:
    """The whole environment."""
    held = launch.sandboxed
    return {
        **render_basic_env(
            home=HOME if held else launch.work_dir,
            config_dir=CONFIG if held else launch.config_dir,
            gateway_url=launch.gateway_url,
            key_kind=launch.key_kind,
            key=launch.key,
        ),
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(launch.output_cap),
        "MAX_THINKING_TOKENS": str(launch.output_cap // 2),
        **SWITCHES,
    }


def render_basic_env(*, home: str, config_dir: str, gateway_url: str, key_kind: KeyKind, key: str) -> dict[str, str]:
    """What every child of ours has: where its things are inside, and the gateway with a key of the same kind as the real one."""
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": home,
        "LANG": "C.UTF-8",
        "CLAUDE_CONFIG_DIR": config_dir,
        "ANTHROPIC_BASE_URL": gateway_url,
        "CLAUDE_CODE_OAUTH_TOKEN" if key_kind == "oauth-token" else "ANTHROPIC_API_KEY": key,
    }


def render_initialize(request_id: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The control request that gives the session its schema."""
    return {
        "type": "control_request",
        "request_id": request_id,
        "request": {"subtype": "initialize", "jsonSchema": dict(schema)},
    }


def render_user(text: str, uuid: str) -> dict[str, Any]:
    """A turn's input. `client_composed`: a "/clear" or an "@file" in it is text and nothing else."""
    return {
        "type": "user",
        "message": {"role": "user", "content": [{"type": "text", "text": text}]},
        "uuid": uuid,
        "client_composed": True,
        "parent_tool_use_id": None,
        "session_id": "",
    }
