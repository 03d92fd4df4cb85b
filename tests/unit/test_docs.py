"""The docs say what is there: every verb, setting, crash point and record, and no link into nothing."""

import re
from pathlib import Path

import pytest

from mind_body.cli.main import VERBS
from mind_body.crash import POINTS
from mind_body.mind.schema import MIGRATIONS
from mind_body.settings import HostConfig, MindConfig, Settings

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
WORDS = {page: page.read_text() for page in PAGES}


def _settings() -> list[tuple[str, str, object]]:
    """Title of its section, name, default."""
    found: list[tuple[str, str, object]] = []
    for shape in (HostConfig, MindConfig):
        for name, field in shape.model_fields.items():
            table = field.annotation
            if isinstance(table, type) and issubclass(table, Settings):
                found += [(f"### `[{name}]`", key, inner.default) for key, inner in table.model_fields.items()]
            else:
                found.append(("## config.toml", name, field.default))
    return found


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_told_of(verb: str) -> None:
    assert any(re.search(rf"(`|mind (--home \S+ )?){verb}\b", text) for text in WORDS.values())


@pytest.mark.parametrize(("section", "name", "default"), _settings())
def test_every_setting_is_documented_with_its_default(section: str, name: str, default: object) -> None:
    words = WORDS[ROOT / "docs" / "configuration.md"].partition(f"\n{section}")[2].partition("\n##")[0]
    row = next((line for line in words.splitlines() if line.startswith(f"| `{name}` |")), "")
    assert row, f"{name} is not in docs/configuration.md, under {section}"
    if isinstance(default, (bool, int, float)):
        assert f"`{str(default).lower()}`" in row
    elif isinstance(default, str):
        assert f'`"{default}"`' in row


def test_the_crash_points_page_has_exactly_the_named_ones() -> None:
    named = set(re.findall(r"`((?:ear|heartbeat|persona|self|voice)\.[A-Za-z0-9-]+)`", WORDS[ROOT / "docs" / "crash-points.md"]))
    assert named == set(POINTS)


@pytest.mark.parametrize("table", sorted(set(re.findall(r"CREATE TABLE (\w+)", "".join(sql for _, sql in MIGRATIONS)))))
def test_every_record_is_described(table: str) -> None:
    assert f"`{table}`" in WORDS[ROOT / "docs" / "records.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_link_leads_nowhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", WORDS[page]):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_make_target_is_named_that_is_not_there(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)", WORDS[page])) <= targets
