"""Door: the package's own data: the commented configuration and the units, in a checkout as in an installed wheel."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def config_dir() -> Path:
    """`config/`: every setting with its default, and the prices."""
    return _find("config")


def units_dir() -> Path:
    """`units/`: systemd's units, sockets, target, and the journal catalog."""
    return _find("units")


def _find(name: str) -> Path:
    # pyproject.toml puts both directories into the wheel under _data; an editable install and a checkout have them at the root.
    installed = _PACKAGE / "_data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name
