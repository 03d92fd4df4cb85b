import tomllib
from pathlib import Path

import pytest

from mind_body.cli.template import EXAMPLE, read_comments, render_host, render_mind
from mind_body.config import parse_settings
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
    tables = {"matrix", "people", "model", "persona", "self"}
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
