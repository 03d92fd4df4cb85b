"""Wiring: `mind doctor`: every check, one line each, and what mends what is not well."""

import json
from dataclasses import asdict

import click
import trio

from mind_body.cli.checks import check_home
from mind_body.cli.unit_checks import check_carried, read_carried
from mind_body.errors import EXIT_OPERATOR
from mind_body.home import Home


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Look at everything a Mind needs: configuration, brake, secrets, homeserver, mind file, model, sandbox, disk.

    Under systemd also whether this release is installed and its units are well, what a unit that failed said last, users and
    rights, and whether credentials are in force. Call it as root there.

    Changes nothing. Exit code 0 when all is well, 78 when an operator must act.

    \b
    JSON: {checks: [{name, ok, detail (what was seen), fix (what mends it, or empty)}]}
    """
    home: Home = ctx.obj
    carried = read_carried(home)
    checks = [*(check_carried(carried) if carried else ()), *trio.run(check_home, home, carried)]
    if as_json:
        click.echo(json.dumps({"checks": [asdict(check) for check in checks]}, indent=2, ensure_ascii=False))
    else:
        for check in checks:
            mark = click.style("ok  ", fg="green") if check.ok else click.style("FAIL", fg="red", bold=True)
            click.echo(f"{mark}  {check.name}: {check.detail}")
            if check.fix:
                click.echo(f"      {check.fix}")
    ctx.exit(0 if all(check.ok for check in checks) else EXIT_OPERATOR)
