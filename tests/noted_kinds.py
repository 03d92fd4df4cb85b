"""Shapes: every call that notes something in the journal, found in the package's source: its kinds, its level, its fields.

A kind is written where it is noted, chosen between two, put together from a table that stands in the same function, or handed on by
a function that takes `kind`. What cannot be found so is named in `Found.unknown`: a kind that nobody can look up explains nothing.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef
NOT_GIVEN = "not given"
"""The level of a call that leaves it to the table."""
COMPUTED = "computed"


@dataclass(frozen=True)
class Noted:
    """One call of `note`."""

    place: str
    kinds: frozenset[str]
    level: str
    """A level, NOT_GIVEN, or COMPUTED."""
    fields: Mapping[str, ast.expr]
    sentence: ast.expr | None


@dataclass
class Found:
    notes: list[Noted] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    @property
    def kinds(self) -> set[str]:
        return {kind for noted in self.notes for kind in noted.kinds}


def find_noted(package: Path) -> Found:
    """Every `.note(…)` below `package`."""
    modules = [_Module(path, str(path.relative_to(package))) for path in sorted(package.rglob("*.py"))]
    found = Found()
    for module in modules:
        for call in module.calls("note"):
            module.add(call, found)
    return found


class _Unknown(Exception):
    pass


class _Module:
    def __init__(self, path: Path, place: str) -> None:
        self.place = place
        self.tree = ast.parse(path.read_text())
        self._inside: dict[ast.AST, Function | None] = {}
        self._mark(self.tree, None)

    def _mark(self, node: ast.AST, function: Function | None) -> None:
        for child in ast.iter_child_nodes(node):
            self._inside[child] = function
            self._mark(child, child if isinstance(child, Function) else function)

    def calls(self, name: str) -> Iterator[ast.Call]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and _name_of(node.func) == name:
                yield node

    def add(self, call: ast.Call, found: Found) -> None:
        if not call.args or (self._inside[call] is not None and self._hands_on(call)):
            return
        place = f"{self.place}:{call.lineno}"
        given = {word.arg: word.value for word in call.keywords if word.arg}
        try:
            kinds = frozenset(self._kinds(call.args[0], call))
        except _Unknown as what:
            found.unknown.append(f"{place}: {what}")
            return
        sentence = call.args[1] if len(call.args) > 1 else None
        fields = {key: value for key, value in given.items() if key != "level"}
        found.notes.append(Noted(place, kinds, _level(given.get("level")), fields, sentence))

    def _hands_on(self, call: ast.Call) -> bool:
        """Notes again what another `note` was given: a list of lines that are told once they are durable."""
        loops = [node for node in ast.walk(self.tree) if isinstance(node, ast.For) and call in set(ast.walk(node))]
        names = {name.id for loop in loops for name in ast.walk(loop.target) if isinstance(name, ast.Name)}
        return isinstance(call.args[0], ast.Name) and call.args[0].id in names

    def _kinds(self, value: ast.expr, at: ast.AST) -> Iterator[str]:
        function = self._inside[at]
        match value:
            case ast.Constant(value=str(text)):
                yield text
            case ast.IfExp(body=one, orelse=other):
                yield from self._kinds(one, at)
                yield from self._kinds(other, at)
            case ast.JoinedStr(values=parts):
                each = [list(self._kinds(part, at)) for part in parts]
                yield from ("".join(pieces) for pieces in product(*each))
            case ast.FormattedValue(value=inner):
                yield from self._kinds(inner, at)
            case _ if keys := self._keys(value, function):
                yield from keys
            case ast.Name(id=name) if function is not None and name in _parameters(function):
                yield from self._handed_in(function, name)
            case ast.Name(id=name) if function is not None:
                yield from self._assigned(function, name)
            case _:
                raise _Unknown(ast.unparse(value))

    def _keys(self, value: ast.expr, function: Function | None) -> list[str]:
        """Of the dict, written out in this function, that is looked up by this very value."""
        words = ast.unparse(value)
        return [
            key.value
            for node in ast.walk(function or self.tree)
            if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Dict) and ast.unparse(node.slice) == words
            for key in node.value.keys
            if isinstance(key, ast.Constant) and isinstance(key.value, str)
        ]

    def _handed_in(self, function: Function, name: str) -> Iterator[str]:
        """What the callers of a function, all in its module, give it as `name`."""
        place = _parameters(function).index(name) - (_parameters(function)[0] == "self")
        calls = [call for call in self.calls(function.name) if len(call.args) > place]
        if not calls:
            raise _Unknown(f"nobody hands {name} to {function.name}")
        for call in calls:
            given = call.args[place]
            yield from self._table(given) if isinstance(given, ast.Starred) else self._kinds(given, call)

    def _table(self, starred: ast.expr) -> Iterator[str]:
        """`*STEPS[…]`: the first of each tuple in a table of this module."""
        match starred:
            case ast.Starred(value=ast.Subscript(value=ast.Name(id=name))):
                for node in self.tree.body:
                    value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
                    if isinstance(value, ast.Dict) and name in ast.unparse(node).split("=")[0]:
                        for row in value.values:
                            assert isinstance(row, ast.Tuple)
                            yield from self._kinds(row.elts[0], node)
            case _:
                raise _Unknown(ast.unparse(starred))

    def _assigned(self, function: Function, name: str) -> Iterator[str]:
        for node in ast.walk(function):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    names = target.elts if isinstance(target, ast.Tuple) else [target]
                    words = [ast.unparse(one) for one in names]
                    if name in words:
                        yield from self._part(node.value, words.index(name) if isinstance(target, ast.Tuple) else None, node)
                        return
        raise _Unknown(name)

    def _part(self, value: ast.expr, index: int | None, at: ast.AST) -> Iterator[str]:
        match value:
            case ast.IfExp(body=one, orelse=other):
                yield from self._part(one, index, at)
                yield from self._part(other, index, at)
            case ast.Tuple(elts=parts) if index is not None:
                yield from self._kinds(parts[index], at)
            case ast.Call(func=called):
                for node in ast.walk(self.tree):
                    if isinstance(node, Function) and node.name == _name_of(called):
                        for back in (one for one in ast.walk(node) if isinstance(one, ast.Return) and one.value):
                            assert back.value is not None
                            yield from self._part(back.value, index, back)
            case _ if index is None:
                yield from self._kinds(value, at)
            case _:
                raise _Unknown(ast.unparse(value))


def _level(given: ast.expr | None) -> str:
    if given is None:
        return NOT_GIVEN
    return str(given.value) if isinstance(given, ast.Constant) else COMPUTED


def _parameters(function: Function) -> Sequence[str]:
    return [one.arg for one in (*function.args.posonlyargs, *function.args.args)]


def _name_of(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
