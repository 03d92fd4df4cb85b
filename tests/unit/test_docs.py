"""The docs say what is there: every verb, setting, crash point and record, and no link into nothing."""

import importlib
import re
from pathlib import Path

import click

from mind_body import errors
from mind_body.cli.install_shapes import ACCOUNTS
from mind_body.cli.main import VERBS
from mind_body.crash import POINTS
from mind_body.journal_kinds.table import KINDS
from mind_body.mind.schema import MIGRATIONS
from mind_body.settings import HostConfig, MindConfig, Settings
from tests.each import each, spread

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
WORDS = {page: page.read_text() for page in PAGES}
OPERATING, SYSTEMD = (WORDS[ROOT / "docs" / name] for name in ("operating.md", "systemd.md"))
UNITS = {".service", ".socket", ".target", ".slice"}
KIND = re.compile(r"[a-z]+\.[a-z-]+")


def _settings() -> list[tuple[str, str, object]]:
    """Title of its section, name, default."""
    found: list[tuple[str, str, object]] = []
    for shape, whose in ((HostConfig, " of the host"), (MindConfig, ":")):
        for name, field in shape.model_fields.items():
            table = field.annotation
            if isinstance(table, type) and issubclass(table, Settings):
                found += [(f"### `[{name}]`{whose}", key, inner.default) for key, inner in table.model_fields.items()]
            else:
                found.append(("## config.toml", name, field.default))
    return found


def _json_keys() -> list[tuple[str, str]]:
    """(verb, key) of every `JSON: …` in a verb's help."""
    found = []
    for verb, (module, name, _) in VERBS.items():
        command = getattr(importlib.import_module(module), name)
        assert isinstance(command, click.Command)
        told = (command.help or "").partition("JSON: ")[2]
        bare = re.sub(r"\([^(){}]*\)|\"[^\"]*\"", "", told)
        found += [(verb, key) for key in sorted(set(re.findall(r"\b[a-z][a-z_]+\b", bare)) - {"and", "by", "null", "or", "what"})]
    return found


def test_every_journal_kind_is_in_the_table_and_no_other() -> None:
    table = OPERATING.partition("## The journal")[2]
    told = {kind for line in table.splitlines() if line.startswith("| `") for kind in KIND.findall(line.split("|")[1])}
    assert told == set(KINDS)


@each(_json_keys, " ".join)
@spread
def test_every_json_key_of_the_help_is_documented(verb: str, key: str) -> None:
    row = next(line for line in OPERATING.partition("## JSON")[2].splitlines() if line.startswith(f"| `{verb}` |"))
    assert f"`{key}`" in row


def test_every_exit_code_is_documented() -> None:
    codes = {str(value) for name, value in vars(errors).items() if name.startswith("EXIT_")}
    assert codes == set(re.findall(r"^\| `(\d+)` \|", OPERATING, re.MULTILINE))


@each(lambda: ["probes", "units"])
def test_every_probe_and_unit_is_described(folder: str) -> None:
    told = (ROOT / folder / "README.md").read_text()
    for path in (ROOT / folder).iterdir():
        assert path.name in {"README.md", "__pycache__", "__init__.py"} or f"`{path.name}" in told, path.name


@each(lambda: sorted(path.name for path in (ROOT / "units").iterdir() if path.suffix in UNITS))
def test_every_unit_is_told_of_with_what_it_is(unit: str) -> None:
    rows = [line for line in SYSTEMD.partition("## What runs")[2].partition("\n## ")[0].splitlines() if line.startswith("| `")]
    assert any(f"`{unit}`" in row.split("|")[1] for row in rows)


@each(lambda: ACCOUNTS[1:])
def test_every_user_is_told_of_with_what_it_may(user: str) -> None:
    rows = SYSTEMD.partition("## Users, files, rights")[2].partition("\n## ")[0].splitlines()
    assert any(row.startswith(f"| `{user}` |") for row in rows)


@each(lambda: sorted(path.name for path in (ROOT / "units").glob("*.service")))
def test_every_service_has_its_figure_in_the_docs(unit: str) -> None:
    assert re.search(rf"^\| `{re.escape(unit)}` \| \d\.\d \|$", SYSTEMD, re.MULTILINE)


def test_every_setting_that_a_unit_leaves_out_of_what_others_have_is_explained() -> None:
    """What one service is hardened by, and another is not, has its reason in the table."""
    texts = [path.read_text() for path in (ROOT / "units").glob("*.service")]
    keys = [
        set(re.findall(r"^((?:Private|Protect|Restrict|Proc|MemoryDeny|Lock|System|NoNew)\w+)=", text, re.MULTILINE))
        for text in texts
    ]
    table = SYSTEMD.partition("| left open |")[2].partition("\n\n")[0]
    for key in set.union(*keys) - set.intersection(*keys):
        assert f"{key}=" in table or key == "PrivateNetwork", key


def test_every_decision_is_in_the_list() -> None:
    pages = {path.name for path in (ROOT / "docs" / "decisions").glob("*.md")} - {"README.md"}
    assert set(re.findall(r"\]\(([a-z0-9-]+\.md)\)", WORDS[ROOT / "docs" / "decisions" / "README.md"])) == pages


@each(lambda: VERBS)
def test_every_verb_is_told_of(verb: str) -> None:
    assert any(re.search(rf"(`|mind (--home \S+ )?){verb}\b", text) for text in WORDS.values())


@each(_settings)
@spread
def test_every_setting_is_documented_with_its_default(section: str, name: str, default: object) -> None:
    words = WORDS[ROOT / "docs" / "configuration.md"].partition(f"\n{section}")[2].partition("\n##")[0]
    row = next((line for line in words.splitlines() if line.startswith(f"| `{name}` |")), "")
    assert row, f"{name} is not in docs/configuration.md, under {section}"
    if isinstance(default, (bool, int, float)):
        assert f"`{str(default).lower()}`" in row
    elif isinstance(default, str):
        assert f'`"{default}"`' in row


def test_the_crash_points_page_has_exactly_the_named_ones() -> None:
    organs = "ear|heartbeat|lease|persona|self|voice"
    named = set(re.findall(rf"`((?:{organs})\.[A-Za-z0-9-]+)`", WORDS[ROOT / "docs" / "crash-points.md"]))
    assert named == set(POINTS)


@each(lambda: sorted(set(re.findall(r"CREATE TABLE (\w+)", "".join(sql for _, sql in MIGRATIONS)))))
def test_every_record_is_described(table: str) -> None:
    assert f"`{table}`" in WORDS[ROOT / "docs" / "records.md"]


@each(lambda: PAGES)
def test_no_link_leads_nowhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", WORDS[page]):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


@each(lambda: PAGES)
def test_no_make_target_is_named_that_is_not_there(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)", WORDS[page])) <= targets
