"""The Iceberg project's own REST document, and how two OpenAPI documents differ. The document is not in the repository.

It is looked for beside the repository, or where the variable ICEBERG_REST_YAML says. Differences are texts that start
with the upstream component or operation they are about, so that one fault of a shared shape is told once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from tests.server import ROOT

FILE = Path(os.environ.get("ICEBERG_REST_YAML") or ROOT.parent / "shared" / "openapi" / "iceberg-rest.yaml")

_METHODS = ("get", "head", "post", "put", "delete", "patch")
Json = dict[str, Any]


@dataclass(frozen=True)
class Operation:
    """One operation of a document, its references followed one step. `answers` maps a status to its response."""

    id: str
    method: str
    path: str
    parameters: dict[tuple[str, str], Json]
    body: Json | None
    answers: dict[str, Json]


@dataclass(frozen=True)
class Shape:
    """A schema with its references, `allOf` and alternatives worked out."""

    schema: Json
    name: str
    nullable: bool
    alternatives: tuple[Shape, ...] = ()

    @property
    def type(self) -> str:
        """JSON type."""
        return str(self.schema.get("type") or ("object" if "properties" in self.schema else "any"))

    @property
    def kind(self) -> str:
        """What tells alternatives apart: the fixed `action` or `type` of an object, else its JSON type."""
        for member in ("action", "type"):
            values = enum(self.schema.get("properties", {}).get(member, {}))
            if len(values) == 1:
                return f"{member}={next(iter(values))}"
        return self.type


def enum(schema: Json) -> set[str]:
    """The only values a schema allows; empty when it names none."""
    return set(map(str, [schema["const"]] if "const" in schema else schema.get("enum", ())))


class Document:
    """An OpenAPI document with a view on its operations and schemas."""

    def __init__(self, raw: Json) -> None:
        self.raw = raw
        self.operations = {found.id: found for found in self._operations()}

    def follow(self, node: Json) -> Json:
        while "$ref" in node:
            found: Any = self.raw
            for part in node["$ref"].removeprefix("#/").split("/"):
                found = found[part.replace("~1", "/").replace("~0", "~")]
            node = {**found, **{key: value for key, value in node.items() if key != "$ref"}}
        return node

    def _operations(self) -> Iterator[Operation]:
        for path, item in self.raw["paths"].items():
            for method in _METHODS:
                if method not in item:
                    continue
                said = item[method]
                parameters = [self.follow(p) for p in (*item.get("parameters", ()), *said.get("parameters", ()))]
                body = self.follow(said["requestBody"]) if "requestBody" in said else None
                yield Operation(
                    said["operationId"],
                    method.upper(),
                    path,
                    {(p["in"], _parameter(p)): p for p in parameters},
                    body,
                    {str(status): self.follow(answer) for status, answer in said["responses"].items()},
                )

    def shape(self, schema: Json, place: str, *, base: bool = False) -> Shape:
        """`place` names the shape unless it is a component, which has a name of its own.

        A discriminator names the alternatives of a shape, but not where it is the base of one of them.
        """
        name = schema["$ref"].rsplit("/", 1)[1] if "$ref" in schema else place
        node = dict(self.follow(schema))
        nullable = bool(node.pop("nullable", False))
        for part in node.pop("allOf", ()):
            base = self.shape(part, name, base=True)
            for key in ("properties", "required"):
                node[key] = _joined(base.schema.get(key), node.get(key))
            node = {**base.schema, **node}
        if isinstance(node.get("type"), list):
            nullable = nullable or "null" in node["type"]
            (node["type"],) = set(node["type"]) - {"null"}
        found: list[Shape] = []
        mapped = [] if base else [{"$ref": of} for of in node.get("discriminator", {}).get("mapping", {}).values()]
        for choice in node.pop("oneOf", node.pop("anyOf", mapped)):
            shape = self.shape(choice, name)
            nullable = nullable or shape.nullable or shape.schema.get("type") == "null"
            if shape.schema.get("type") != "null":
                found.extend(shape.alternatives or (shape,))
        if len(found) == 1:
            return Shape(found[0].schema, found[0].name, nullable)
        return Shape(node, name, nullable, tuple(found))


def _parameter(parameter: Json) -> str:
    """Names of headers have no letter case."""
    name: str = parameter["name"]
    return name.lower() if parameter["in"] == "header" else name


def _joined(base: Any, own: Any) -> Any:
    if isinstance(base, dict) or isinstance(own, dict):
        return {**(base or {}), **(own or {})}
    return [*(base or ()), *(own or ())]


def media(answer: Json | None) -> Json | None:
    """The JSON schema of a body or response; None if it has none."""
    content = (answer or {}).get("content", {}).get("application/json")
    return content["schema"] if content else None


@cache
def upstream() -> Document:
    """The upstream document; the test is skipped where it is not."""
    if not FILE.is_file():
        pytest.skip(f"the upstream REST document is not at {FILE}; ICEBERG_REST_YAML can say where it is")
    return Document(yaml.load(FILE.read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader)))


def compare_shapes(
    ours: Document, mine: Json, theirs: Document, other: Json, place: str, *, sent: bool
) -> Iterator[str]:
    """Where a schema of ours and one of theirs differ in members, required members, nulls, JSON types and enums.

    What we promise beyond theirs of a body that we send (`sent`), a member that is always there say, is no difference.
    """
    seen: set[tuple[str, str]] = set()

    def walk(mine: Shape, other: Shape) -> Iterator[str]:
        at = other.name
        pair = (json.dumps(mine.schema, sort_keys=True) + mine.name, at)
        if pair in seen:
            return
        seen.add(pair)
        if mine.nullable and not other.nullable:
            yield f"{at}: may be null"
        if other.nullable and not mine.nullable and not sent:
            yield f"{at}: may not be null"
        if mine.type == "any" and not mine.alternatives:
            yield f"{at}: is any JSON"
            return
        if mine.alternatives or other.alternatives:
            yield from choices(mine, other)
            return
        if mine.type != other.type:
            yield f"{at}: is {mine.type}, not {other.type}"
            return
        yield from _sets(f"{at}: value", enum(mine.schema), enum(other.schema))
        members, known = (of.schema.get("properties", {}) for of in (mine, other))
        yield from _sets(f"{at}: member", members, known)
        both = members.keys() & known.keys()
        required = [set(of.schema.get("required", ())) & both for of in (mine, other)]
        yield from _sets(f"{at}: required", required[0] & required[1] if sent else required[0], required[1])
        for name in sorted(both):
            yield from walk(ours.shape(members[name], name), theirs.shape(known[name], f"{at}.{name}"))
        for key, text in (("items", "[]"), ("additionalProperties", ".*")):
            inner = [of.schema.get(key) for of in (mine, other)]
            if all(isinstance(schema, dict) for schema in inner):
                yield from walk(ours.shape(inner[0], text), theirs.shape(inner[1], at + text))

    def choices(mine: Shape, other: Shape) -> Iterator[str]:
        here, there = (_by_kind(shape.alternatives or (shape,)) for shape in (mine, other))
        yield from _sets(f"{other.name}: alternative", here, there)
        for kind in sorted(here.keys() & there.keys()):
            yield from walk(here[kind], there[kind])

    yield from walk(ours.shape(mine, place), theirs.shape(other, place))


def _by_kind(shapes: Iterable[Shape]) -> dict[str, Shape]:
    """Alternatives of the same kind are told apart by name."""
    shapes = tuple(shapes)
    kinds = [of.kind for of in shapes]
    return {of.kind if kinds.count(of.kind) == 1 else f"{of.kind} {of.name}": of for of in shapes}


def _sets(what: str, mine: Iterable[str], other: Iterable[str]) -> Iterator[str]:
    yield from (f"{what} {name} only here" for name in sorted(set(mine) - set(other)))
    yield from (f"{what} {name} only upstream" for name in sorted(set(other) - set(mine)))


def compare_operations(ours: Document, theirs: Document, prefix: str) -> Iterator[str]:
    """Where the operations under a path prefix differ: ids, verbs, paths, parameters, statuses and shapes."""
    here = {found.id: found for found in ours.operations.values() if found.path.startswith(prefix)}
    yield from _sets("operation", here, theirs.operations)
    for name in sorted(here.keys() & theirs.operations.keys()):
        mine, other = here[name], theirs.operations[name]
        if (mine.method, mine.path) != (other.method, other.path):
            yield f"{name}: is {mine.method} {mine.path}, not {other.method} {other.path}"
        places = [{f"{place} {of}": p for (place, of), p in found.parameters.items()} for found in (mine, other)]
        yield from _sets(f"{name}: parameter", *places)
        for key in sorted(places[0].keys() & places[1].keys()):
            required = [bool(found[key].get("required")) for found in places]
            if required[0] != required[1]:
                yield f"{name}: parameter {key} is {'required' if required[0] else 'optional'}"
            values = [{**found[key]["schema"], "nullable": True} for found in places]
            yield from compare_shapes(ours, values[0], theirs, values[1], f"{name} {key}", sent=False)
        if bool((mine.body or {}).get("required")) != bool((other.body or {}).get("required")):
            yield f"{name}: body is {'required' if (mine.body or {}).get('required') else 'optional'}"
        yield from _sets(f"{name}: status", mine.answers, other.answers)
        pairs = [("request", media(mine.body), media(other.body))]
        both = sorted(mine.answers.keys() & other.answers.keys())
        pairs += [(status, media(mine.answers[status]), media(other.answers[status])) for status in both]
        for what, own, given in pairs:
            if own is None or given is None:
                if own is not given:
                    yield f"{name}: body of {what} only {'here' if own else 'upstream'}"
            else:
                yield from compare_shapes(ours, own, theirs, given, f"{name} {what}", sent=what != "request")


@cache
def _validator(operation: str, status: str) -> Any:
    schema = media(upstream().operations[operation].answers[status])
    return schema and jsonschema_rs.Draft202012Validator({**schema, "components": _components()})


@cache
def _components() -> Any:
    return _nullable({"schemas": upstream().raw["components"]["schemas"]})


def _nullable(node: Any) -> Any:
    """`nullable: true` is OpenAPI 3.0 in a 3.1 document; it is read as it was meant."""
    if isinstance(node, list):
        return [_nullable(item) for item in node]
    if not isinstance(node, dict):
        return node
    found = {key: _nullable(value) for key, value in node.items() if key != "nullable"}
    return {"anyOf": [found, {"type": "null"}]} if node.get("nullable") is True else found


def faults(operation: str, status: str, body: Any) -> Iterator[str]:
    """What the upstream response schema says against a body: violations, and members that it does not know."""
    for error in _validator(operation, status).iter_errors(body):
        yield f"{operation} {status} {'.'.join(map(str, error.instance_path))}: {error.message[:300]}"
    theirs = upstream()
    schema = media(theirs.operations[operation].answers[status])
    assert schema is not None
    yield from _unknown(theirs, theirs.shape(schema, operation), body)


def _unknown(theirs: Document, shape: Shape, value: Any) -> Iterator[str]:
    if isinstance(value, list):
        items = shape.schema.get("items")
        for item in value if items else ():
            yield from _unknown(theirs, theirs.shape(items, shape.name + "[]"), item)
    if not isinstance(value, dict):
        return
    for choice in shape.alternatives:
        if choice.kind in (f"action={value.get('action')}", f"type={value.get('type')}", "object"):
            shape = choice
    known, rest = shape.schema.get("properties", {}), shape.schema.get("additionalProperties")
    for name, item in value.items():
        if name in known:
            yield from _unknown(theirs, theirs.shape(known[name], f"{shape.name}.{name}"), item)
        elif known and not rest:
            yield f"{shape.name}: member {name} only here"


def settle(found: Iterable[str], deviations: Mapping[str, str]) -> None:
    """AssertionError unless the deviations are exactly the differences found.

    A deviation is a pattern of differences (`*` for any text) with the reason why it is deliberate.
    """
    differences = set(found)
    new = sorted(text for text in differences if not any(fnmatchcase(text, _literal(of)) for of in deviations))
    stale = sorted(of for of in deviations if not any(fnmatchcase(text, _literal(of)) for text in differences))
    assert not new, "not as upstream, and not a listed deviation:\n" + "\n".join(new)
    assert not stale, "listed as deviations, but as upstream:\n" + "\n".join(stale)


def _literal(pattern: str) -> str:
    """`[]` stands for itself: it marks items of arrays."""
    return pattern.replace("[", "[[]")
