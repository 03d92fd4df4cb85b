"""Wiring: `mind up`: all organs of a home directory in the foreground, for people without systemd."""

import os
import signal

import click
import trio

from mind_body import log
from mind_body.cli.organs import Command, Organs, organ_command
from mind_body.config import environment, list_minds, read_host_config
from mind_body.errors import ConfigError, MindBodyError
from mind_body.home import Home
from mind_body.host.journal_native import find_journal
from mind_body.host.limits import raise_descriptor_limit
from mind_body.host.liveness import take_hold
from mind_body.host.notify import Notify


@click.command()
@click.pass_obj
def up(home: Home) -> None:
    """Run mouth, heartbeat, lease and the halves of Minds of a home directory in the foreground, until Ctrl-C or SIGTERM.

    \b
    What systemd does for an installed host, this does for --home DIR:
    it binds the sockets, starts a half of a Mind at its first poke, and starts again what dies.
    New Minds are taken up while it runs.
    """
    trio.run(run_organs, home)


async def run_organs(home: Home, command: Command = organ_command) -> None:
    """Until SIGTERM or SIGINT. Raises ConfigError without a home, MindBodyError where another `mind up` runs on it."""
    if home.root is None:
        raise ConfigError("`mind up` runs the organs of a home directory: name it with --home DIR; an installed host has its units")
    if not home.root.is_dir():
        raise ConfigError(f"{home.root} does not exist; `mind --home {home.root} new NAME` makes a home with a first Mind")
    host = read_host_config(home)
    log.configure(host.log_level, host.log_format, find_journal(environment))
    home.run.mkdir(mode=0o700, parents=True, exist_ok=True)
    raise_descriptor_limit()  # a socket per Mind
    hold = take_hold(home.lock_file("up"), str(os.getpid()))
    if hold is None:
        raise MindBodyError(f"another `mind up` runs on {home.root} already ({home.lock_file('up')} is locked)")
    journal, notify = log.Journal("up"), Notify(environment)
    try:
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(Organs(home, host, journal, command).run)
                names = ", ".join(list_minds(home)) or "none yet (`mind new NAME` makes one)"
                journal.note("up.started", f"Running the organs of {home.root}. Minds: {names}.")
                notify.ready(f"Running the organs of {home.root}")
                async for _ in signals:
                    break
                notify.stopping()
                nursery.cancel_scope.cancel()
    finally:
        hold.release()
    journal.note("up.ended", "Every organ has ended.")
