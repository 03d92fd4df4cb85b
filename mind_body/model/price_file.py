"""Door: the dated price file: the operator's own copy where there is one, else the one that came with this release."""

from pathlib import Path

from mind_body.config import parse_settings, read_toml
from mind_body.data import config_dir
from mind_body.home import Home
from mind_body.model.prices import PriceBook

FILE_NAME = "prices.toml"


def read_prices(home: Home | None = None) -> PriceBook:
    """The prices in force, or a ConfigError that names the file and the key."""
    path = _find(home)
    return parse_settings(PriceBook, read_toml(path), str(path))


def _find(home: Home | None) -> Path:
    own = home.etc / FILE_NAME if home else None
    return own if own and own.exists() else config_dir() / FILE_NAME
