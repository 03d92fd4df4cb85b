"""Wiring: the `mind` command: its verbs, loaded when they are called, and what a failure looks like.

1. A verb's module is imported when the verb is: `mind organ mouth` never loads what `mind demo` needs.
2. A failure is one sentence on stderr and an exit code: 0 done, 1 failed, 2 usage, 78 an operator must act.
"""

import gc
import importlib
from collections.abc import Iterator
from typing import Any

import click

from mind_body.config import environment, find_home
from mind_body.errors import EXIT_FAILED, MindBodyError
from mind_body.host.journal_native import reads_stderr

_CLI = "mind_body.cli"
VERBS: dict[str, tuple[str, str, str]] = {
    "new": (f"{_CLI}.new", "new", "Make a Mind: configuration, character, credentials."),
    "up": (f"{_CLI}.up", "up", "Run the organs in the foreground."),
    "demo": (f"{_CLI}.demo", "demo", "Talk with a Persona on this machine, now."),
    "chat": (f"{_CLI}.chat", "chat", "Talk with a Mind from this terminal."),
    "status": (f"{_CLI}.status", "status", "Show every Mind: brake, run, mail, money."),
    "log": (f"{_CLI}.log", "log", "Show the journal of a Mind: what happened, and why."),
    "history": (f"{_CLI}.history", "history", "Show what a Mind heard, said and did."),
    "why": (f"{_CLI}.why", "why", "Say why a Mind acts or does not, and when she may."),
    "spend": (f"{_CLI}.spend", "spend", "Show what was spent, and what is left to spend."),
    "questions": (f"{_CLI}.questions", "questions", "List what only you can decide, or answer it."),
    "campaign": (f"{_CLI}.campaign", "campaign", "Give a Mind something to work towards."),
    "runs": (f"{_CLI}.runs", "runs", "List what her Self works on and worked on."),
    "run": (f"{_CLI}.runs", "run", "Show, watch, stop or start work of a Self."),
    "brake": (f"{_CLI}.control", "brake", "Hold Minds, or release them."),
    "dial": (f"{_CLI}.control", "dial", "Show what a Mind may spend, or turn it."),
    "backup": (f"{_CLI}.copies", "backup", "Copy a Mind's memory while everything runs."),
    "restore": (f"{_CLI}.copies", "restore", "Put a backup in its place."),
    "doctor": (f"{_CLI}.doctor", "doctor", "Look for what is wrong, and what mends it."),
    "install": (f"{_CLI}.install", "install", "Let systemd carry this host's Minds."),
    "uninstall": (f"{_CLI}.install", "uninstall", "Take back what install put on this host."),
    "organ": (f"{_CLI}.organ", "organ", "Run one organ, as systemd and `mind up` do."),
}
"""Verb → module, the command in it and its line in `mind --help`, in the order of a newcomer's day."""


class Verbs(click.Group):
    """A group whose commands are imported on demand, and whose failures are sentences."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        if cmd_name not in VERBS:
            return None
        module, name, _ = VERBS[cmd_name]
        command = getattr(importlib.import_module(module), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """From our own table: `mind --help` imports no verb."""
        with formatter.section("Commands"):
            formatter.write_dl([(verb, told) for verb, (_, _, told) in VERBS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (MindBodyError, OSError, BaseExceptionGroup) as error:
            failure = find_failure(error)
            if failure is None:
                raise
            sentence, code = failure
            mark = "<3>" if reads_stderr(environment) else ""  # sd-daemon(3): to the journal it is an error
            click.echo(f"{mark}mind: {sentence}", err=True)
            ctx.exit(code)


def find_failure(error: BaseException) -> tuple[str, int] | None:
    """The sentence and the exit code of the first failure that a person can act on; None for a fault of ours."""
    for leaf in _leaves(error):
        if isinstance(leaf, KeyboardInterrupt):
            return "interrupted", EXIT_FAILED
        if isinstance(leaf, MindBodyError):
            return str(leaf), leaf.exit_code
        if isinstance(leaf, OSError) and leaf.filename:
            return f"{leaf.filename}: {leaf.strerror}", EXIT_FAILED
    return None


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """An error, or every error inside a nursery's group of them."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--home", metavar="DIR", help="Everything lies below DIR (else MIND_HOME, else /etc/mind, /var/lib/mind, /run/mind).")
@click.version_option(package_name="mind-body", prog_name="mind")
@click.pass_context
def cli(ctx: click.Context, home: str | None) -> None:
    """Carries persistent agents, Minds, on this host. A Mind's Persona talks on Matrix.

    \b
    To try it, with nothing but this machine:
        mind demo
    To give a Mind of your own a home, and run it in the foreground:
        mind --home ~/minds new ada
        mind --home ~/minds doctor
        mind --home ~/minds brake release ada
        mind --home ~/minds up

    Every verb that reads has --json. Exit codes: 0 done, 1 failed, 2 usage, 78 an operator must act.
    """
    if environment.get("NO_COLOR") or environment.get("TERM") == "dumb":
        ctx.color = False
    ctx.obj = find_home(home)


def main() -> None:
    """The console script."""
    gc.enable()
    cli(prog_name="mind")
