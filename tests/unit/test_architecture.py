"""The front page of mind_body is the map; this holds it (style.md 14)."""

import ast
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import mind_body
from mind_body.crash import POINTS
from tests.each import each

pytestmark = pytest.mark.xdist_group("source")  # which is read once for all of them
PACKAGE = Path(mind_body.__file__).parent
KINDS = ("Shapes", "Rule", "Door", "Loop", "Wiring")
ORGANS = ("mouth", "heartbeat", "persona", "self_run", "lease")
LINES_MAX = 300

HOMES = {
    "httpx": {"matrix/client.py", "model/http.py"},
    "h11": {"model/gateway.py"},
    "sdnotify": {"host/notify.py"},
    "psutil": {"host/process.py"},
    "uuid_utils": {"ids.py"},
    "uuid": set[str](),
    "tomllib": {"config.py"},
    "subprocess": set[str](),
    "structlog": {"log.py"},
    "sqlite3": {"sqlite_file.py"},
    "markdown_it": {"matrix/markdown.py", "matrix/speech.py"},
    "xllamacpp": {"model/local_server.py", "model/local_child.py", "model/local.py"},
}
"""One home per outside thing. Who may come through the door to SQLite is a room, and the ledger's doors."""
SQLITE = "mind_body.sqlite_file"
LEDGER = re.compile(r"lease/ledger\w*\.py")


@dataclass(frozen=True)
class Module:
    path: str
    name: str
    tree: ast.Module
    text: str

    @property
    def room(self) -> str:
        return self.name.split(".")[1] if "." in self.name else self.name

    @property
    def kind(self) -> str:
        return (ast.get_docstring(self.tree) or "").partition(":")[0]

    def imports(self) -> Iterator[str]:
        """Every imported module, also inside functions: an arrow that points up late still points up."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{self.path}: relative imports hide the map"
                yield from (self._target(node.module or "", alias.name) for alias in node.names)

    @staticmethod
    def _target(module: str, name: str) -> str:
        inside = PACKAGE.parent / Path(*module.split(".")) / name
        return f"{module}.{name}" if inside.is_dir() or inside.with_suffix(".py").is_file() else module


def _load(path: Path) -> Module:
    relative = path.relative_to(PACKAGE.parent).with_suffix("")
    parts = relative.parts[:-1] if relative.name == "__init__" else relative.parts
    text = path.read_text()
    return Module(str(path.relative_to(PACKAGE)), ".".join(parts), ast.parse(text), text)


@functools.cache
def modules() -> list[Module]:
    return [_load(path) for path in sorted(PACKAGE.rglob("*.py"))]


@functools.cache
def by_name() -> dict[str, Module]:
    return {module.name: module for module in modules()}


@functools.cache
def code() -> list[Module]:
    """What is no front page."""
    return [module for module in modules() if not module.path.endswith("__init__.py")]


def path_of(module: Module) -> str:
    return module.path


def _floors() -> dict[str, int]:
    """Room → floor, read from the picture on the front page; the roof is 0."""
    picture = (mind_body.__doc__ or "").partition("Rooms, from the roof down.")[2].splitlines()[1:]
    floors = {"__main__": 0}
    for floor, line in enumerate(line for line in picture if line.strip()):
        for word in line.split():
            if not ((PACKAGE / word).is_dir() or (PACKAGE / f"{word}.py").is_file()):
                break
            floors[word] = floor
    return floors


FLOORS = _floors()


def _inside(module: Module) -> Iterator[Module]:
    for name in module.imports():
        if name in by_name() and name != "mind_body":
            yield by_name()[name]


@each(code, path_of)
def test_the_first_word_says_which_kind_of_module_it_is(module: Module) -> None:
    assert module.kind in KINDS, f"{module.path} opens with '{module.text[:40]}'"


@each(code, path_of)
def test_a_module_is_one_room(module: Module) -> None:
    lines = module.text.count("\n")
    assert lines <= LINES_MAX, f"{module.path} has {lines} lines: is it one room, or two?"


@each(lambda: [m for m in code() if m.kind in {"Rule", "Shapes"}], path_of)
def test_rules_and_shapes_import_no_door(module: Module) -> None:
    wrong = sorted(
        {m.name for m in _inside(module) if m.kind not in {"Rule", "Shapes"} and m in code() and m.name not in _PURE_DOORS}
    )
    assert not wrong, f"{module.path} is a {module.kind} and imports {', '.join(wrong)}"


_PURE_DOORS = {"mind_body.clock", "mind_body.ids"}
"""Doors with pure corners: `Millis` and `render_utc` take an instant, `digest` and `derived_id` compute over values. What in them
touches the outside is named below, and a rule may not name it."""
_IMPURE_NAMES = {"now_ms", "new_id", "new_session_uuid", "new_secret"}


@each(lambda: [m for m in code() if m.kind == "Rule"], path_of)
def test_a_rule_is_told_the_instant_and_touches_nothing(module: Module) -> None:
    names = {node.id for node in ast.walk(module.tree) if isinstance(node, ast.Name)}
    asynchronous = [
        node for node in ast.walk(module.tree) if isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith)
    ]
    outside = {"trio", "structlog", "logging", "os", "io", "random", "time", "socket", "httpx", "sqlite3", "secrets"}
    assert not asynchronous, f"{module.path} is async"
    assert not names & _IMPURE_NAMES, f"{module.path} asks for {names & _IMPURE_NAMES}"
    assert not {name.split(".")[0] for name in module.imports()} & outside, f"{module.path} reaches outside"
    assert "open" not in names, f"{module.path} opens a file"
    assert not any(name.startswith("mind_body.log") for name in module.imports()), f"{module.path} logs"


@each(code, path_of)
def test_every_outside_thing_has_one_home(module: Module) -> None:
    outside = {name.split(".")[0] for name in module.imports()}
    for thing, homes in HOMES.items():
        if thing in outside:
            assert module.path in homes, f"{module.path} imports {thing}, whose home is {', '.join(sorted(homes)) or 'nowhere'}"


def _may_sql(module: Module) -> bool:
    return module.room == "mind" or LEDGER.fullmatch(module.path) is not None


_SQL = re.compile(r"\b(SELECT .+ FROM|INSERT (OR \w+ )?INTO|UPDATE \w+ SET|DELETE FROM|CREATE (TABLE|INDEX|VIEW))\b", re.DOTALL)
_PRAGMA = re.compile(r"\bPRAGMA \w+\b")


@each(lambda: [m for m in code() if not _may_sql(m)], path_of)
def test_sql_is_written_in_the_mind_and_the_ledger_alone(module: Module) -> None:
    """Their door knows how a file is kept, and of no table."""
    texts = [node.value for node in ast.walk(module.tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    assert not [text for text in texts if _SQL.search(text)], f"{module.path} writes SQL"
    assert module.name == SQLITE or not [text for text in texts if _PRAGMA.search(text)], f"{module.path} writes SQL"
    assert SQLITE not in module.imports(), f"{module.path} imports {SQLITE}, which is the mind's and the ledger's"


@each(lambda: [m for m in modules() if m.path != "__init__.py"], path_of)
def test_arrows_point_down(module: Module) -> None:
    assert module.room in FLOORS, f"{module.room} is not on the front page"
    for target in _inside(module):
        if target.room != module.room:
            assert FLOORS[target.room] >= FLOORS[module.room], f"{module.path} imports {target.name}, which is above it"


@each(lambda: [m for m in modules() if m.room in ORGANS], path_of)
def test_organs_meet_in_the_mind_and_import_nothing_of_each_other(module: Module) -> None:
    others = {target.name for target in _inside(module) if target.room in ORGANS and target.room != module.room}
    assert not others, f"{module.path} imports {', '.join(others)}"


def test_the_arrows_form_no_circle() -> None:
    done: set[str] = set()

    def walk(module: Module, above: tuple[str, ...]) -> None:
        assert module.name not in above, f"a circle: {' → '.join((*above, module.name))}"
        if module.name in done:
            return
        for target in _inside(module):
            if target in code() and target is not module:
                walk(target, (*above, module.name))
        done.add(module.name)

    for module in code():
        walk(module, ())


def test_the_crash_points_in_use_are_exactly_the_named_ones() -> None:
    used: list[str] = []
    for module in code():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "crash_point":
                assert isinstance(node.args[0], ast.Constant), f"{module.path}: a crash point's name is a literal"
                used.append(str(node.args[0].value))
    assert set(used) == set(POINTS)


def test_every_room_is_on_the_map() -> None:
    present = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name not in {"__pycache__", "_data"}}
    present |= {path.stem for path in PACKAGE.glob("*.py") if not path.stem.startswith("__")}
    assert present <= set(FLOORS)
