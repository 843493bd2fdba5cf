"""The regular expressions of the program, and whether one of them can backtrack for longer than its text.

A pattern is linear when no two unbounded repeats of it can share out the same text: a repeat that gives back and any
later one must have no character in common, or something between them that the first cannot match. A pattern that is
looked for at every place of a text may hold no unbounded repeat at all, unless it is bound to the beginning.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
_SCANNING = frozenset({"search", "finditer", "findall", "sub", "subn", "split"})
_METHODS = _SCANNING | {"match", "fullmatch"}
_ALPHABET = [chr(point) for point in (*range(0x250), 0x661, 0x3000, 0xD800)]
_BOUNDED = 1_024


@dataclass(frozen=True)
class Use:
    """A pattern under its module and name, and how it is used."""

    module: str
    name: str
    pattern: re.Pattern[Any]
    scans: bool


def modules(*besides: str) -> Iterator[tuple[str, ast.Module]]:
    """Every module of the program by its dotted name, but those below `besides`."""
    for file in sorted((ROOT / "app").rglob("*.py")):
        name = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        if not name.startswith(besides):
            yield name, ast.parse(file.read_text())


def uses(*besides: str) -> list[Use]:
    """Every pattern. AssertionError for a use of `re` that is not `NAME = re.compile(...)` of a module."""
    found = []
    for name, tree in modules(*besides):
        calls = [node for node in ast.walk(tree) if _is_re(node)]
        named = {
            target.id: node.value
            for node in tree.body
            for target in _targets(node)
            if isinstance(node, ast.Assign | ast.AnnAssign) and _is_re(node.value)
        }
        loose = [call.lineno for call in calls if call not in named.values()]
        assert not loose, f"{name}: lines {loose} use `re` elsewhere than in a constant of the module"
        for constant in named:
            how = {
                node.func.attr
                for node in ast.walk(tree)
                if isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id == constant
            }
            assert how and how <= _METHODS, f"{name}.{constant} is used in a way that nobody has judged: {how}"
            pattern = getattr(importlib.import_module(name), constant)
            found.append(Use(name, constant, pattern, bool(how & _SCANNING)))
    return found


def _targets(node: ast.AST) -> list[ast.Name]:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [target for target in targets if isinstance(target, ast.Name)]


def _is_re(node: ast.AST | None) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "re"
    )


def fault(pattern: re.Pattern[Any], *, scans: bool) -> str | None:
    """Why the pattern may take longer than its text is long; None when it cannot."""
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    flags = pattern.flags & (re.IGNORECASE | re.DOTALL | re.MULTILINE | re.ASCII)
    for path in _paths(parser.parse(text, flags), flags):
        anchored = bool(path) and path[0].kind == "start" and not flags & re.MULTILINE
        repeats = [at for at, item in enumerate(path) if item.kind in ("many", "atomic")]
        if repeats and scans and not anchored:
            return "it is looked for everywhere and holds an unbounded repeat"
        for first, second in ((a, b) for a in repeats for b in repeats if a < b):
            between = path[first + 1 : second]
            parted = any(item.kind == "one" and item.chars.isdisjoint(path[first].chars) for item in between)
            apart = parted or path[first].chars.isdisjoint(path[second].chars)
            if path[first].kind == "many" and not apart:
                return "two unbounded repeats can share out the same text"
    return None


@dataclass(frozen=True)
class _Item:
    """`one` character, `maybe` some, `many` without bound, an `atomic` run of many, or the `start` of the text."""

    kind: str
    chars: frozenset[str] = frozenset()


_Path = tuple[_Item, ...]


def _paths(nodes: Any, flags: int) -> list[_Path]:
    return [sum(parts, ()) for parts in product(*(_node(kind, value, flags) for kind, value in nodes))]


def _node(kind: Any, value: Any, flags: int) -> list[_Path]:
    if kind is op.AT:
        return [(_Item("start"),)] if value in (op.AT_BEGINNING, op.AT_BEGINNING_STRING) else [()]
    if kind in (op.ASSERT, op.ASSERT_NOT):
        assert not any(item.kind in ("many", "atomic") for path in _paths(value[1], flags) for item in path)
        return [()]
    if kind is op.SUBPATTERN:
        return _paths(value[3], (flags | value[1]) & ~value[2])
    if kind is op.BRANCH:
        return [path for branch in value[1] for path in _paths(branch, flags)]
    if kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
        return _repeat(kind, *value, flags)
    return [(_Item("one", _chars(kind, value, flags)),)]


def _repeat(kind: Any, low: int, high: Any, body: Any, flags: int) -> list[_Path]:
    inside = _paths(body, flags)
    plain = len(inside) == 1 and len(inside[0]) == 1 and inside[0][0].kind == "one"
    chars = frozenset().union(*(item.chars for path in inside for item in path))
    if high <= _BOUNDED:
        if plain:
            return [inside[0] * bool(low) + ((_Item("maybe", chars),) if high > low else ())]
        return [*([] if low else [()]), *inside, *([] if high == 1 else [a + b for a in inside for b in inside])]
    rest = _Item("atomic" if kind is op.POSSESSIVE_REPEAT else "many", chars)
    if plain:
        return [inside[0] * bool(low) + (rest,)]
    if all(item.kind in ("one", "maybe") for path in inside for item in path):
        firsts = [path[0].chars for path in inside if path]
        certain = len(inside) == len(firsts) and all(item.kind == "one" for path in inside for item in path)
        told_apart = all(a.isdisjoint(b) for at, a in enumerate(firsts) for b in firsts[:at])
        # Rounds that can be cut in several ways are as bad as two repeats.
        return [(rest,) if certain and told_apart else (rest, rest)]
    # What repeats holds a repeat: taken twice it shows whether one round can take from the next.
    return [*([] if low else [()]), *inside, *[a + b for a in inside for b in inside]]


def _chars(kind: Any, value: Any, flags: int) -> frozenset[str]:
    if kind is op.ANY:
        return frozenset(_ALPHABET if flags & re.DOTALL else set(_ALPHABET) - {"\n"})
    if kind is op.IN:
        chosen = frozenset().union(*(_chars(*item, flags) for item in value if item[0] is not op.NEGATE))
        return frozenset(_ALPHABET) - chosen if value[0][0] is op.NEGATE else chosen
    if kind is op.NOT_LITERAL:
        return frozenset(_ALPHABET) - _chars(op.LITERAL, value, flags)
    if kind is op.CATEGORY:
        return frozenset(char for char in _ALPHABET if re.fullmatch(_CATEGORIES[value], char, flags & re.ASCII))
    points = range(value[0], value[1] + 1) if kind is op.RANGE else [value]
    found = {chr(point) for point in points}
    if flags & re.IGNORECASE:
        found |= {char.lower() for char in found} | {char.upper() for char in found}
    return frozenset(found)


_CATEGORIES = {
    op.CATEGORY_DIGIT: r"\d",
    op.CATEGORY_NOT_DIGIT: r"\D",
    op.CATEGORY_SPACE: r"\s",
    op.CATEGORY_NOT_SPACE: r"\S",
    op.CATEGORY_WORD: r"\w",
    op.CATEGORY_NOT_WORD: r"\W",
}
