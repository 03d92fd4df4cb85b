"""Every kind of journal line has its id, its level and its explanation, and no line carries what people wrote, or a secret."""

import ast
import functools
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import mind_body
from mind_body.cli.main import VERBS
from mind_body.data import units_dir
from mind_body.host.journal_native import NAME
from mind_body.journal_kinds.kind import PRIORITY, Kind, make_message_id
from mind_body.journal_kinds.table import KINDS, render_catalog
from mind_body.log import OWN_FIELDS
from mind_body.settings import HostConfig, MindConfig
from tests.each import each
from tests.noted_kinds import COMPUTED, NOT_GIVEN, Found, Noted, find_noted

pytestmark = pytest.mark.xdist_group("source")  # which is read once for all of them


@functools.cache
def found() -> Found:
    return find_noted(Path(mind_body.__file__).parent)


def notes() -> list[Noted]:
    return found().notes


def place_of(noted: Noted) -> str:
    return noted.place


def _words(kind: Kind) -> Iterator[str]:
    yield from (kind.what, kind.means, kind.act)


def test_every_kind_that_is_noted_can_be_found_in_the_source() -> None:
    assert found().unknown == []
    assert len(notes()) > 100


def test_every_kind_that_is_noted_is_explained() -> None:
    missing = {kind: make_message_id(kind) for kind in found().kinds - KINDS.keys()}
    assert not missing, f"the table lacks these; their message ids are {missing}"


def test_nothing_is_explained_that_nobody_notes() -> None:
    assert KINDS.keys() - found().kinds == set()


@each(lambda: sorted(KINDS))
def test_a_message_id_is_made_from_its_kind_and_never_changes(name: str) -> None:
    assert KINDS[name].message_id == make_message_id(name)
    assert re.fullmatch(r"[0-9a-f]{32}", KINDS[name].message_id)


def test_the_message_ids_of_the_first_release_are_what_they_were() -> None:
    assert KINDS["heard.mail"].message_id == "6a5674cf40b1c60c39a8dfcdf0e951de"
    assert KINDS["call.settled"].message_id == "d6837de8b72430f67d43d64f75e6dfd1"


def test_no_two_kinds_share_a_message_id_or_what_they_say() -> None:
    assert len({kind.message_id for kind in KINDS.values()}) == len(KINDS)
    assert len({kind.what for kind in KINDS.values()}) == len(KINDS)


@each(lambda: sorted(KINDS))
def test_a_kind_says_in_sentences_what_happened_what_it_means_and_what_to_do(name: str) -> None:
    assert re.fullmatch(r"[a-z]+\.[a-z-]+", name)
    for words in _words(KINDS[name]):
        assert words[0].isupper() or words[0] == "`"
        assert words.endswith(".")
        assert "  " not in words
        assert words.isprintable()
        assert not words.startswith("-- ")  # the catalog's own mark
    assert len(KINDS[name].what) <= 100


@each(lambda: sorted(KINDS))
def test_who_must_act_is_told_how(name: str) -> None:
    kind = KINDS[name]
    if kind.level == "error":
        assert kind.act != "Nothing."
    if kind.level == "debug":
        assert kind.act == "Nothing." or kind.act.startswith("At warning")


def test_the_table_has_the_level_that_a_kind_is_noted_at() -> None:
    levels: dict[str, set[str]] = defaultdict(set)
    for noted in notes():
        for kind in noted.kinds:
            levels[kind].add(noted.level)
    for kind, (level, *others) in levels.items():
        assert others or level in {NOT_GIVEN, COMPUTED} or KINDS[kind].level == level, kind


def test_what_the_explanations_name_is_there() -> None:
    settings = {
        f"{section}.{key}"
        for shape in (HostConfig, MindConfig)
        for section, field in shape.model_fields.items()
        for key in getattr(field.annotation, "model_fields", {})
    }
    for name, kind in KINDS.items():
        told = " ".join(_words(kind))
        assert set(re.findall(r"`mind ([a-z]+)", told)) <= set(VERBS), name
        for word in re.findall(r"`([a-z]+\.[a-z_]+)`", told):
            assert word in settings | {"prices.toml", "config.toml"}, f"{name} names {word}"


@each(notes, place_of)
def test_a_field_is_one_that_the_journal_takes_and_that_is_not_made_there(noted: Noted) -> None:
    for name in noted.fields:
        assert NAME.fullmatch(name), name
        assert name not in OWN_FIELDS


def _ends(value: ast.AST) -> Iterator[str]:
    """What a value is in the end: `heard.body` is a body, `key.kind` is a kind, `len(text)` is a text as far as we can tell."""
    match value:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            yield name
        case ast.Call(func=ast.Name(id="len" | "sum" | "max")):
            return
        case ast.Call(args=arguments):
            yield from (name for one in arguments for name in _ends(one))
        case _:
            yield from (name for one in ast.iter_child_nodes(value) for name in _ends(one))


WRITTEN = {
    "body",
    "content",
    "formatted_body",
    "text",
    "say",
    "brief",
    "prompt",
    "result",
    "handoff_text",
    "answer_text",
    "transcript",
}
SECRETS = {"secret", "token", "password", "key", "access_token", "refresh_token", "credential"}


@each(notes, place_of)
def test_no_line_is_made_of_what_people_wrote_or_of_a_secret(noted: Noted) -> None:
    made_of = {**noted.fields, **({} if noted.sentence is None else {"MESSAGE": noted.sentence})}
    for name, value in made_of.items():
        if (noted.place.partition(":")[0], name) not in VOUCHED_FOR:
            assert not set(_ends(value)) & (WRITTEN | SECRETS), f"{noted.place}: {name}={ast.unparse(value)}"


VOUCHED_FOR = {
    ("model/lease.py", "CALL"),  # the key of a dict: a call's id
    ("heartbeat/settle.py", "MESSAGE"),  # a question's text, which is made of settings and figures (test_breaker.py, test_purse.py)
}


def test_the_catalog_that_is_shipped_is_made_from_the_table() -> None:
    shipped = (units_dir() / "mind-body.catalog").read_text()
    assert shipped == render_catalog(), "python -m mind_body.journal_kinds.table > units/mind-body.catalog"


def test_journalctl_takes_the_catalog_and_explains_every_kind(tmp_path: Path) -> None:
    journalctl = shutil.which("journalctl")
    if journalctl is None:
        pytest.skip("journalctl is not here: it comes with systemd")
    place = tmp_path / "usr" / "local" / "lib" / "systemd" / "catalog"
    place.mkdir(parents=True)
    shutil.copy(units_dir() / "mind-body.catalog", place)
    done = subprocess.run([journalctl, f"--root={tmp_path}", "--update-catalog"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    listed = subprocess.run([journalctl, f"--root={tmp_path}", "--list-catalog"], capture_output=True, text=True, check=True).stdout
    assert {line.split()[0] for line in listed.splitlines()} == {kind.message_id for kind in KINDS.values()}
    dumped = subprocess.run([journalctl, f"--root={tmp_path}", "--dump-catalog"], capture_output=True, text=True, check=True).stdout
    for kind in KINDS.values():
        entry = dumped.partition(f"-- {kind.message_id}\n")[2].partition("\n-- ")[0]
        said = " ".join(entry.split())
        assert f"Subject: {kind.what.removesuffix('.')} Defined-By: mind-body {kind.means} What to do: {kind.act}" == said


def test_levels_are_syslogs() -> None:
    assert PRIORITY == {"error": 3, "warning": 4, "notice": 5, "info": 6, "debug": 7}
