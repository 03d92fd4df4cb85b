"""Door: our own settings, written out as TOML for people: every key with its default, under the sentence that explains it.

Keys, defaults and sentences all come from `settings.py`, so that file and code cannot drift. What was chosen stands there as a
setting; what was not stands there commented out, with its default.
"""

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mind_body import settings
from mind_body.settings import HostConfig, MindConfig, Settings

WIDTH = 100
Comments = Mapping[tuple[str, str], str]
"""(class, field) → the sentence below the field."""

EXAMPLE = {
    "matrix": {"homeserver": "https://matrix.example.org", "user": "@ada:example.org"},
    "people": {"operators": ["@you:example.org"]},
}
HOST_TITLE = "What holds for every Mind of this host. Every key may be left out; what is commented out is the default."
MIND_TITLE = "One Mind. What is commented out is the default. An unknown key is an error that names the nearest known one."


def read_comments() -> Comments:
    """The sentences of `settings.py`, from its source: Python itself forgets them."""
    found: dict[tuple[str, str], str] = {}
    for shape in ast.parse(inspect.getsource(settings)).body:
        if isinstance(shape, ast.ClassDef):
            for field, after in zip(shape.body, [*shape.body[1:], None], strict=True):
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    found[shape.name, field.target.id] = _sentence(after)
    return found


def render_settings(shape: type[Settings], values: Mapping[str, Any], title: str) -> str:
    """TOML of one file: its own keys first, then its tables."""
    comments = read_comments()
    lines = _comment(title)
    if keys := list(_keys(shape, values, comments)):
        lines += ["", *keys]
    for name, field in shape.model_fields.items():
        table = field.annotation
        if isinstance(table, type) and issubclass(table, Settings):
            lines += ["", *_comment(_told(table)), f"[{name}]", *_keys(table, values.get(name, {}), comments)]
    return "\n".join(lines).rstrip() + "\n"


def render_mind(values: Mapping[str, Any]) -> str:
    return render_settings(MindConfig, values, MIND_TITLE)


def render_host(values: Mapping[str, Any]) -> str:
    return render_settings(HostConfig, values, HOST_TITLE)


def write_examples(directory: Path) -> None:
    """`config/config.toml` and `config/mind.toml`; a test holds them to this."""
    (directory / "config.toml").write_text(render_host({}))
    (directory / "mind.toml").write_text(render_mind(EXAMPLE))


def _keys(shape: type[Settings], values: Mapping[str, Any], comments: Comments) -> Iterator[str]:
    for name, field in shape.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Settings):
            continue
        yield from _comment(comments.get((shape.__name__, name), ""))
        if name in values:
            yield f"{name} = {_toml(values[name])}"
        elif field.is_required():
            yield f"# {name} ="
        elif field.default is None:
            yield f"# {name} =   (not set)"
        else:
            yield f"# {name} = {_toml(field.default)}"


def _told(table: type[Settings]) -> str:
    words = (table.__doc__ or "").partition(": ")[2]
    return words[:1].upper() + words[1:]


def _comment(text: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(" ".join(text.split()), WIDTH - 2)]


def _sentence(node: ast.stmt | None) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return re.sub(r" ?\(design §[^)]*\)", "", node.value.value)
    return ""


def _toml(value: object) -> str:
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{json.dumps(key)} = {_toml(inner)}" for key, inner in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    # A JSON string is a TOML basic string; numbers, booleans and lists of strings are spelled alike.
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)
