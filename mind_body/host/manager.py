"""Door: the service manager and the tools that come with it. The one home of `systemctl`, as who administers this host calls it.

Organs never call it: starting a unit by its socket needs no privilege and no bus (design §2).
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import trio

from mind_body.errors import ChildError, MindBodyError
from mind_body.home import NAME_PATTERN
from mind_body.host.credentials import UNITS
from mind_body.host.process import drain_lines, start_child

OLDEST = 252
"""The systemd that the units are written for: Debian 12's."""
PATTERNS = ("mind.target", "mind@*.target", "mind-*.service", "mind-*.socket", "mind.slice")
_OURS = re.compile(
    rf"mind\.(target|slice)|mind@{NAME_PATTERN.pattern}\.target"
    rf"|mind-(mouth|heartbeat|lease|lease-stream|(persona|self)@{NAME_PATTERN.pattern})\.(service|socket)"
)
_ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "SYSTEMD_PAGER": ""}
_CALL_S = 180.0
"""A start waits until its units are ready; each of them has 90 s."""


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str


def is_booted() -> bool:
    """Whether systemd runs this host (sd_booted(3))."""
    return Path("/run/systemd/system").is_dir()


def read_version() -> int | None:
    """systemd's; None where it is not installed."""
    try:
        ran = run_tool(["systemctl", "--version"])
    except ChildError:
        return None
    found = re.match(r"systemd (\d+)", ran.out)
    return int(found[1]) if found else None


def list_active() -> tuple[str, ...]:
    """Of our units those that run, are being started or ended, or have failed."""
    ran = run_tool(["systemctl", "list-units", "--plain", "--no-legend", "--full", *PATTERNS])
    names = [line.split()[0] for line in ran.out.splitlines() if line.split()]
    return tuple(name for name in names if _OURS.fullmatch(name))


def list_enabled() -> tuple[str, ...]:
    """Of our targets those that start at boot: by the links that `systemctl enable` makes, which lists no instances."""
    links = Path("/etc/systemd/system").glob("*.wants/mind*.target")
    return tuple(sorted({link.name for link in links if _OURS.fullmatch(link.name)}))


def hand_over(kinds: Collection[str]) -> None:
    """Credentials of these kinds were written: whoever has copies begins anew, to be handed the new ones. Raises MindBodyError."""
    units = [unit for kind, unit in UNITS.items() if kind in kinds]
    if is_booted() and units:
        change(["systemctl", "try-restart", *units])


def start_mind(name: str) -> bool:
    """Now and at every boot; in an image that is being made, at its boots, and False. Raises MindBodyError."""
    booted = is_booted()
    change(["systemctl", "enable", *(["--now"] if booted else []), f"mind@{name}.target"])
    return booted


def change(argv: Sequence[str], within_s: float = _CALL_S) -> None:
    """Run it to its end. Raises MindBodyError with what it said."""
    ran = run_tool(argv, within_s)
    if ran.code:
        words = " ".join((ran.err or ran.out).split()) or f"it ended with {ran.code}"
        raise MindBodyError(f"`{' '.join(argv)}` failed: {words}")


def run_tool(argv: Sequence[str], within_s: float = _CALL_S) -> Ran:
    """Raises ChildError where it is not there, or takes longer than it may."""
    return trio.run(call_tool, argv, within_s)


async def call_tool(argv: Sequence[str], within_s: float = _CALL_S) -> Ran:
    """The same, where trio runs already."""
    child = start_child(argv, env=_ENVIRONMENT, stdout="pipe", stderr="pipe")
    out: list[str] = []
    err: list[str] = []
    try:
        with trio.fail_after(within_s):
            async with trio.open_nursery() as nursery:
                for stream, lines in ((child.stdout, out), (child.stderr, err)):
                    assert stream is not None
                    nursery.start_soon(drain_lines, stream, lines.append)
            code = await child.wait()
    except trio.TooSlowError as error:
        raise ChildError(f"`{' '.join(argv[:4])}{' …' * (len(argv) > 4)}` does not end within {within_s:g} s") from error
    finally:
        await child.aclose()
    return Ran(code, "\n".join(out), "\n".join(err))
