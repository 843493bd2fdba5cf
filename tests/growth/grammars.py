"""Every grammar that clients write in: what reads it, and examples to spoil."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from app.api import deps
from app.api.namespaces import router as namespaces
from app.api.schema_changes import router as schema_changes
from app.catalog import (
    locations,
    results,
    schema_history,
    table_ranking,
    warehouses,
)
from app.catalog.storage import check_name, check_place
from app.edge import callers, content_encoding, guard, raw_path
from app.edge.etags import IfNoneMatch
from app.errors import BadRequest
from app.evolution.editing.operations import parse_operations
from app.evolution.editing.schema_builder import SchemaBuilder
from app.evolution.editing.schema_input import wanted_schema
from app.evolution.engine import policy
from app.evolution.engine.column_properties import followed
from app.evolution.engine.readers import honours_initial_default
from app.iceberg import (
    datetimes,
    endpoint,
    location,
    metadata_file,
    name_mapping,
    names,
    primitives,
    transforms,
    types,
)
from app.iceberg.encryption import encrypted_key_from_json
from app.iceberg.json import codec
from app.iceberg.schema import decode_schema, parse_schema
from app.iceberg.update import parse_table_updates
from app.iceberg.values import parse_value
from app.metadata import properties
from app.objects import address
from app.store import paths as stored_paths

Reader = Callable[[str], object]


@dataclass(frozen=True)
class Grammar:
    """`examples` are well-formed texts; `modules` those whose reading of text is covered by it."""

    name: str
    modules: tuple[str, ...]
    read: Reader
    examples: tuple[str, ...]


def _schema(*names: str) -> dict[str, Any]:
    fields = [{"id": at, "name": name, "required": False, "type": "int"} for at, name in enumerate(names, 1)]
    return {"type": "struct", "schema-id": 0, "fields": fields}


_BEFORE, _AFTER = parse_schema(_schema("a", "b")), parse_schema(_schema("a", "c"))
_NESTED = '{"type":"struct","fields":[{"id":1,"name":"a","required":true,"type":"geography(c, karney)"}]}'
_LIST = '{"type":"list","element-id":1,"element":"fixed[3]","element-required":true}'
_UUID = "0b4a5c6d-1234-5678-9abc-def012345678"
_INTEGER = TypeAdapter(int)
_LOCATIONS = ("s3a://bucket/a/../b", "file:///a//b/", "/a/%2e%2e/b", "abfss://c@h.net/x\\y", "s3://b")


def _integer(text: str) -> int:
    """As FastAPI reads a number of the query or the path."""
    try:
        return _INTEGER.validate_python(text)
    except ValidationError as error:
        raise BadRequest(str(error.error_count())) from None


def _value(kind: str) -> Reader:
    found = primitives.parse_type_string(kind)
    return lambda text: parse_value(found, text)


def _update(action: str, member: str) -> Reader:
    return lambda text: parse_table_updates([{"action": action, member: text}])


def _keys(text: str) -> object:
    return list(stored_paths.ancestors(stored_paths.location_key(text))), stored_paths.path_of((text,))


GRAMMARS = (
    Grammar(
        "type string",
        ("app.iceberg.primitives",),
        primitives.parse_type_string,
        ("decimal(9, 2)", "fixed[16]", "geometry(srid:1)", "geography(srid:1, karney)", "timestamptz_ns"),
    ),
    Grammar("type", ("app.iceberg.types",), lambda text: types.parse_type(codec.decode(text)), (_NESTED, _LIST)),
    Grammar("schema", ("app.iceberg.json.typed",), lambda text: decode_schema(text.encode()), (_NESTED,)),
    Grammar(
        "transform",
        ("app.iceberg.transforms",),
        transforms.parse_transform,
        ("bucket[16]", "truncate[4]", "void", "days(x)"),
    ),
    Grammar("date", ("app.iceberg.datetimes",), datetimes.parse_date, ("2026-11-01", "+12345-01-01", "-0001-01-01")),
    Grammar("time", ("app.iceberg.datetimes",), datetimes.parse_time, ("10:11", "10:11:12.123456789")),
    Grammar(
        "timestamp",
        ("app.iceberg.datetimes",),
        lambda text: datetimes.parse_timestamp(text, zoned=True),
        ("2026-11-01T10:11:12.5+00:00", "2026-11-01t10:11Z"),
    ),
    Grammar("decimal", ("app.iceberg.values",), _value("decimal(38, 2)"), ("-12.34", "1E-2", "+.5e+1")),
    Grammar("uuid", ("app.iceberg.values",), _value("uuid"), (_UUID,)),
    Grammar("bytes", ("app.iceberg.values",), _value("binary"), ("0aFF",)),
    Grammar("fixed", ("app.iceberg.values",), _value("fixed[2]"), ("0aFF",)),
    Grammar("string", ("app.iceberg.values",), _value("string"), ("text",)),
    Grammar("name", ("app.iceberg.names",), names.validate_name, ("orders", "a b", "..")),
    Grammar("levels", ("app.iceberg.names",), lambda text: names.validate_levels(text.split("\x1f")), ("a\x1fb",)),
    Grammar("location", ("app.iceberg.location",), location.canonical, _LOCATIONS),
    Grammar("overlap", ("app.iceberg.location",), lambda text: location.overlaps(text, "s3://bucket/a"), _LOCATIONS),
    Grammar(
        "joined location",
        ("app.iceberg.location", "app.catalog.locations"),
        lambda text: (
            location.join(text, text),
            location.strip_trailing_slash(text),
            location.is_absolute(text),
            locations.safe_segment(text),
        ),
        _LOCATIONS,
    ),
    Grammar("place", ("app.catalog.storage",), check_place, _LOCATIONS),
    Grammar("address", ("app.objects.address", "app.objects.remote"), address.parse_address, _LOCATIONS),
    Grammar("stored key", ("app.store.paths",), _keys, _LOCATIONS),
    Grammar(
        "metadata file",
        ("app.iceberg.metadata_file",),
        lambda text: (metadata_file.parse_version(text), metadata_file.is_gzip_name(text)),
        ("s3://b/t/metadata/00012-a-b.gz.metadata.json", "v7.metadata.json.gz"),
    ),
    Grammar("uuid of a table", ("app.iceberg.update",), _update("assign-uuid", "uuid"), (_UUID,)),
    Grammar(
        "encryption key",
        ("app.iceberg.encryption",),
        lambda text: encrypted_key_from_json({"key-id": "k", "encrypted-key-metadata": text}, "$"),
        ("AAAA", "AA=="),
    ),
    Grammar(
        "JSON",
        ("app.iceberg.json.codec",),
        lambda text: codec.decode_request(text.encode()),
        ('{"a":[1,-2.5e3,"\\u003a"]}',),
    ),
    Grammar(
        "name mapping",
        ("app.iceberg.name_mapping",),
        name_mapping.parse_name_mapping,
        ('[{"field-id":1,"names":["a","b"],"fields":[{"names":[]}]}]',),
    ),
    Grammar("integer property", ("app.metadata.properties",), properties.integer, ("100", "-1")),
    Grammar(
        "column list",
        ("app.evolution.engine.column_properties", "app.evolution.rules.usage"),
        lambda text: followed({"write.orc.bloom.filter.columns": text}, _BEFORE, _AFTER),
        ("a, b,c",),
    ),
    Grammar(
        "rule property",
        ("app.evolution.engine.policy",),
        lambda text: (
            policy.misspelt({f"icekeel.rule.{text}": text}),
            policy.tightenings({"icekeel.rule.ICE702": text}),
        ),
        ("ICE702", " Error "),
    ),
    Grammar(
        "column path",
        ("app.evolution.editing.schema_builder", "app.evolution.editing.operations", "app.catalog.rebasing"),
        lambda text: SchemaBuilder(_BEFORE, 2).place(parse_operations([{"op": "drop", "path": text}])[0].path),  # type: ignore[union-attr]
        ("a.element.b", "a"),
    ),
    Grammar(
        "operation", ("app.evolution.editing.operations",), lambda text: parse_operations([{"op": text}]), ("drop",)
    ),
    Grammar(
        "Arrow schema",
        ("app.evolution.editing.schema_input",),
        lambda text: wanted_schema({"arrow-ipc-schema": text}),
        (base64.b64encode(bytes(range(64))).decode(),),
    ),
    Grammar(
        "reader's version",
        ("app.evolution.engine.readers",),
        lambda text: honours_initial_default("pyiceberg", text[:64]),
        ("0.10.0", "1.8"),
    ),
    Grammar("page token", ("app.catalog.results",), lambda text: results._position(("x",), text), ("AbCd-_12",)),
    Grammar("history token", ("app.catalog.schema_history",), schema_history._position, ("j12.-1", "m.4")),
    Grammar("standing", ("app.catalog.table_ranking",), table_ranking._place, ("12:34",)),
    Grammar("entity tags", ("app.edge.etags",), lambda text: "x" in IfNoneMatch(text), ('W/"a", "b" , c', "*")),
    Grammar("warehouse name", ("app.catalog.warehouses",), warehouses._NAME.fullmatch, ("lake_1",)),
    Grammar("storage option", ("app.catalog.storage",), check_name, ("s3.region", "adls.sas-token.x")),
    Grammar("endpoint", ("app.iceberg.endpoint",), endpoint.origin, ("https://u@[::1]:9000/x?y#z",)),
    Grammar("number", ("app.api.deps",), _integer, ("12", "+1")),
    Grammar("idempotency key", ("app.api.deps",), deps._UUID.fullmatch, (_UUID,)),
    Grammar(
        "moment",
        ("app.api.schema_changes.router",),
        lambda text: schema_changes._moment(text, "since", 0),
        ("7d", "1760000000000", "2026-11-01T10:11:12.123456+01:00"),
    ),
    Grammar(
        "parent",
        ("app.api.namespaces.router", "app.api.table_ranking.router"),
        lambda text: (namespaces._parent(text), namespaces._decoded_again(text)),
        ("a\x1fb", "a%1Fb%2e"),
    ),
    Grammar("path segment", ("app.edge.raw_path",), raw_path.decode_levels, ("a%1Fb+c%2E",)),
    Grammar(
        "query",
        ("app.edge.raw_path",),
        lambda text: raw_path.decode_query(text.encode()),
        ("a=b&c=%20d&a=b",),
    ),
    Grammar(
        "target",
        ("app.edge.raw_path",),
        lambda text: raw_path.routed(text.encode(), "default"),
        ("http://host/v1/namespaces", "/v1/namespaces/x"),
    ),
    Grammar(
        "accepted codings",
        ("app.edge.content_encoding",),
        content_encoding._takes_gzip,
        ("gzip;q=0.5, *; Q = 0", "x-gzip"),
    ),
    Grammar(
        "user agent",
        ("app.edge.callers",),
        lambda text: (callers.client_of(text, ""), callers.client_of("", text)),
        ("PyIceberg/0.10.0", "Apache Iceberg 1.10.0 (commit x)"),
    ),
    Grammar(
        "host",
        ("app.edge.guard",),
        lambda text: guard.is_loopback_name(guard.host_name(text)),
        ("[::1]:80", "127.0.0.1"),
    ),
    Grammar("origin", ("app.edge.guard",), guard._authority, ("http://localhost:80",)),
    Grammar("bearer", ("app.edge.guard",), lambda text: guard.bearer(text.encode()), ("Bearer x",)),
)

UNITS = (
    " ", "\t", "(", ")", "[", "]", "{", "9", "0", ".", ",", ":", ";", "-", "+", "=", "&", "%", "%25", "%1F", '"', "'",
    "/", "\\", "\\u003a", "W/", 'W/"', "a", "A.", "(a", "[9", '{"a":', "e9", "T", "é", "\u3000", "\x1f", "\x00", "*, ",
    "../", "a,", " ,",
)  # fmt: skip
"""What is repeated without end."""


def spoiled(grammar: Grammar, size: int) -> list[str]:
    """Texts of about `size` characters: examples cut somewhere, a unit repeated there, and with or without the rest."""
    texts = []
    for example in grammar.examples:
        step = max(1, len(example) // 12)
        for at in sorted({*range(0, len(example), step), len(example)}):
            for unit in UNITS:
                run = unit * (size // len(unit))
                texts += [example[:at] + run + example[at:], example[:at] + run]
    return list(dict.fromkeys(texts))
