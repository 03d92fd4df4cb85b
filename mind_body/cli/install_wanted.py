"""Door: what this release puts on a host: the package's units, written for this installation, and where each thing lies.

The administrator's own software is below /usr/local, where systemd looks for units, users, temporary files and journal catalogs as
it does below /usr, which is for packages of the distribution.
"""

from pathlib import Path

from mind_body.cli.install_host import digest_of
from mind_body.cli.install_shapes import ACCOUNTS, GROUP, Wanted, WantedDirectory, WantedFile
from mind_body.cli.installation import Installation
from mind_body.cli.unit_text import render_unit
from mind_body.data import units_dir
from mind_body.host.manager import OLDEST

PREFIX = "/usr/local"
PLACES = ("/etc/mind", "/var/lib/mind")
"""Of configuration and state."""
RUNTIME = "/run/mind"
NAME = "mind-body.conf"
UNITS = ("*.service", "*.socket", "*.target", "*.slice")
PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


def read_wanted(installation: Installation, prefix: str, root: Path, systemd: int = OLDEST) -> Wanted:
    """Below a directory that will be a root, users are not known: there directories have no owners."""
    owned = root == Path("/")
    units = units_dir()

    def unit(path: Path) -> WantedFile:
        text = render_unit(path.read_text(), installation.program, installation.python, systemd)
        return _file(f"{prefix}/lib/systemd/system/{path.name}", text)

    return Wanted(
        release=installation.release,
        code=installation.code,
        prefix=prefix,
        sysusers=_file(f"{prefix}/lib/sysusers.d/{NAME}", (units / "sysusers.d" / NAME).read_text()),
        tmpfiles=_file(f"{prefix}/lib/tmpfiles.d/{NAME}", (units / "tmpfiles.d" / NAME).read_text()),
        units=tuple(unit(path) for pattern in UNITS for path in sorted(units.glob(pattern))),
        catalogs=tuple(
            _file(f"{prefix}/lib/systemd/catalog/{path.name}", path.read_text()) for path in sorted(units.glob("*.catalog"))
        ),
        directories=tuple(_directories(owned=owned)),
        runtime=WantedDirectory(RUNTIME, 0o2770, "root", GROUP),
        links=_links(installation, prefix, root),
        accounts=ACCOUNTS,
    )


def _directories(*, owned: bool) -> list[WantedDirectory]:
    """Configuration is read by the organs and written by root; what organs write lies in a Mind's own directory (`mind new`)."""
    root, group = ("root", GROUP) if owned else ("", "")
    return [
        WantedDirectory("/etc/mind", 0o2750, root, group),
        WantedDirectory("/etc/mind/minds", 0o2750, root, group),
        WantedDirectory("/etc/mind/persona", 0o2750, root, group),
        WantedDirectory("/etc/mind/control", 0o755, root, group),
        WantedDirectory("/etc/mind/credentials", 0o700, root, root),
        WantedDirectory("/etc/mind/credentials/matrix", 0o700, root, root),
        WantedDirectory("/etc/mind/credentials/model", 0o700, root, root),
        WantedDirectory("/var/lib/mind", 0o2750, root, group),
    ]


def _links(installation: Installation, prefix: str, root: Path) -> dict[str, str]:
    """`mind` where a shell finds it, unless it is there already, by another way."""
    program, link = installation.program, f"{prefix}/bin/mind"
    if len(program) > 1:
        return {}
    ways = [f"{directory}/mind" for directory in PATH if f"{directory}/mind" != link]
    there = any(way == program[0] or _read_link(root / way.lstrip("/")) == program[0] for way in ways)
    return {} if there or program[0] == link else {link: program[0]}


def _read_link(path: Path) -> str:
    return str(path.readlink()) if path.is_symlink() else ""


def _file(path: str, text: str) -> WantedFile:
    content = text.encode()
    return WantedFile(path, content, digest_of(content))
