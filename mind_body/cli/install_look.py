"""Door: what this release would put on a host, what is found there, and what would be done about it. Nothing is done."""

from mind_body.cli.install_host import Host
from mind_body.cli.install_plan import plan_install
from mind_body.cli.install_shapes import NEW_SUFFIX, Facts, Plan, Wanted
from mind_body.cli.install_wanted import PREFIX, read_wanted
from mind_body.cli.installation import Installation


def look_at(
    host: Host, installation: Installation, systemd: int, prefix: str | None = None, *, start: bool = True
) -> tuple[Wanted, Facts, Plan]:
    """`systemd`: the version that will read the units. `prefix`: where they go, if not where they are. Raises ConfigError."""
    before = host.read_manifest()
    chosen = prefix or (before.prefix if before else "") or PREFIX
    wanted = read_wanted(installation, chosen.rstrip("/"), host.root, systemd)
    facts = host.read_facts(_paths(wanted), wanted.accounts, before)
    return wanted, facts, plan_install(wanted, facts, start=start)


def _paths(wanted: Wanted) -> list[str]:
    """Everything that has to be looked at."""
    files = [file.path for file in wanted.files]
    directories = [one.path for one in (*wanted.directories, wanted.runtime)]
    return [*files, *(f"{path}{NEW_SUFFIX}" for path in files), *wanted.links, *directories]
