"""Our own files: written out from the settings, and read back with a sentence for each fault."""

import tomllib
from pathlib import Path

import pytest

from mind_body.cli.template import EXAMPLE, read_comments, render_host, render_mind
from mind_body.config import find_home, parse_settings, read_host_config
from mind_body.errors import ConfigError
from mind_body.settings import HostConfig, MindConfig, Settings

CONFIG = Path(__file__).parents[2] / "config"
REGENERATE = (
    "run: .venv/bin/python -c 'from pathlib import Path; from mind_body.cli.template import *; write_examples(Path(\"config\"))'"
)


@pytest.mark.parametrize(("name", "text"), [("config.toml", render_host({})), ("mind.toml", render_mind(EXAMPLE))])
def test_the_examples_are_what_the_settings_say(name: str, text: str) -> None:
    assert (CONFIG / name).read_text() == text, REGENERATE


@pytest.mark.parametrize("shape", Settings.__subclasses__(), ids=lambda shape: shape.__name__)
def test_every_setting_of_a_configuration_file_has_its_sentence(shape: type[Settings]) -> None:
    comments = read_comments()
    tables = {"matrix", "people", "model", "persona", "self", "spend"}
    missing = [
        name for name in shape.model_fields if shape.__module__ == "mind_body.settings" and not comments[shape.__name__, name]
    ]
    assert set(missing) <= tables


def test_uncommenting_every_default_changes_nothing() -> None:
    lines = render_mind(EXAMPLE).splitlines()
    uncommented = [
        line[2:] if line.startswith("# ") and " = " in line and line[2:].split(" =")[0].isidentifier() else line for line in lines
    ]
    values = tomllib.loads("\n".join(line for line in uncommented if "(not set)" not in line))
    assert parse_settings(MindConfig, values, "all") == parse_settings(MindConfig, dict(EXAMPLE), "example")
    assert parse_settings(HostConfig, tomllib.loads(render_host({})), "host") == HostConfig()


def test_named_workspaces_are_written_as_they_are_read() -> None:
    values = {**EXAMPLE, "self": {"enabled": True, "workspaces": {"garden": '/srv/a "quoted" place', "Pond-2": "/srv/é"}}}
    assert parse_settings(MindConfig, tomllib.loads(render_mind(values)), "mind") == parse_settings(MindConfig, values, "values")


@pytest.mark.parametrize("name", ["", "-a", "a/b", "..", "a b", "a" * 65])
def test_a_workspace_has_a_name_that_can_be_a_directory(name: str) -> None:
    with pytest.raises(ConfigError):
        parse_settings(MindConfig, {**EXAMPLE, "self": {"workspaces": {name: "/srv"}}}, "mind")


@pytest.mark.parametrize(
    ("says", "meant"),
    [
        ("berlin", "Europe/Berlin"),
        ("Europe/Berln", "Europe/Berlin"),
        ("new york", "America/New_York"),
        ("", "UTC"),
        ("../etc", None),
    ],
)
def test_an_unknown_time_zone_is_an_error_that_names_the_nearest(tmp_path: Path, says: str, meant: str | None) -> None:
    (tmp_path / "config.toml").write_text(f'time_zone = "{says}"\n')
    with pytest.raises(ConfigError, match="names no time zone") as raised:
        read_host_config(find_home(str(tmp_path)))
    assert "config.toml" in str(raised.value)
    assert meant is None or f"did you mean '{meant}'?" in str(raised.value)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Asia/Kathmandu", "Etc/GMT+5"])
def test_a_time_zone_is_taken_as_it_is_written(tmp_path: Path, zone: str) -> None:
    (tmp_path / "config.toml").write_text(f'time_zone = "{zone}"\n')
    assert read_host_config(find_home(str(tmp_path))).time_zone == zone


@pytest.mark.parametrize(
    ("table", "key", "value", "told"),
    [
        ("persona", "quiet_hours", ["22-7"], "must be a span of a day, like 22:00-07:00 (it says '22-7')"),
        ("persona", "quiet_hours", ["22:00-24:00"], "must be a span of a day"),
        ("persona", "quiet_hours", ["22:00-07:00", "12:00-12:00"], "`persona.quiet_hours.1` begins when it ends"),
        ("persona", "quiet_hours", ["22:00-07:00", "06:30-22:00"], "`persona.quiet_hours` leave no minute of a day"),
        ("persona", "home_room", "#garden:example.org", "must be a room's id, which begins with '!'"),
        ("persona", "loop_turns", 0, "greater than or equal to 1"),
        ("spend", "day_usd", -1, "greater than or equal to 0"),
        ("spend", "day_usd", "lots", "(it says 'lots')"),
        ("spend", "dayly_usd", 3, "did you mean `day_usd`?"),
    ],
)
def test_a_value_that_cannot_be_is_told_what_is_wanted(table: str, key: str, value: object, told: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_settings(MindConfig, {**EXAMPLE, table: {key: value}}, "mind")
    assert told in str(raised.value)
