"""Tables that several readers must read alike: schemas before and after, files, and the rows that are right."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec

from app.iceberg.schema import Schema
from app.projection.projection import PartitionValue
from tests.projection.parquet_files import Row, parquet
from tests.projection.shorthand import field, list_of, map_of, of, part, struct

U = UUID("00112233-4455-6677-8899-aabbccddeeff")


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One data file, the table schema it is read under, and the rows that come out.

    `lags` names readers that are known not to follow the spec here.
    """

    name: str
    written: Schema
    rows: Sequence[Row]
    requested: Schema
    expected: Sequence[Row]
    version: int = 2
    ids: bool = True
    mapping: str | None = None
    spec: Sequence[Mapping[str, Any]] = ()
    partition: Mapping[int, PartitionValue] = {}
    lags: tuple[str, ...] = ()

    def file(self) -> io.BytesIO:
        return parquet(self.written, self.rows, ids=self.ids)


def identity(source: int, name: str) -> Mapping[str, Any]:
    return {"source-id": source, "field-id": 1000, "name": name, "transform": "identity"}


POINT = struct(field(2, "x", "int", initial=0), field(3, "y", "int", initial=0))
CASES = [
    Case(
        name="worked example",
        written=of(field(1, "a", "int"), field(2, "b", "string"), field(3, "c", "double")),
        rows=[{1: 1, 2: "x", 3: 0.5}],
        requested=of(field(3, "measurement", "double"), field(2, "name", "string"), field(4, "a", "int")),
        expected=[{3: 0.5, 2: "x", 4: None}],
    ),
    Case(
        name="drop and add again",
        written=of(field(1, "order_id", "long", True), field(2, "country", "string")),
        rows=[{1: 1, 2: "NO"}, {1: 2, 2: None}],
        requested=of(field(1, "order_id", "long", True), field(3, "country", "string")),
        expected=[{1: 1, 3: None}, {1: 2, 3: None}],
    ),
    Case(
        name="rename and swap names",
        written=of(field(1, "a", "int"), field(2, "b", "int")),
        rows=[{1: 1, 2: 2}],
        requested=of(field(1, "b", "int"), field(2, "a", "int")),
        expected=[{1: 1, 2: 2}],
    ),
    Case(
        name="promotions",
        written=of(field(1, "i", "int"), field(2, "f", "float"), field(3, "d", "decimal(9, 2)")),
        rows=[{1: 2**31 - 1, 2: 0.5, 3: Decimal("12.50")}, {1: None, 2: None, 3: None}],
        requested=of(field(1, "i", "long"), field(2, "f", "double"), field(3, "d", "decimal(18, 2)")),
        expected=[{1: 2**31 - 1, 2: 0.5, 3: Decimal("12.50")}, {1: None, 2: None, 3: None}],
    ),
    Case(
        name="date to timestamp",
        written=of(field(1, "d", "date"), field(2, "e", "int")),
        rows=[{1: 17486, 2: 1}],
        requested=of(field(1, "d", "timestamp"), field(2, "e", "int")),
        expected=[{1: 17486 * 86_400_000_000, 2: 1}],
        version=3,
        lags=("pyiceberg",),
    ),
    Case(
        name="promotions inside",
        written=of(
            field(1, "s", struct(field(2, "i", "int"))),
            field(3, "l", list_of(4, "int")),
            field(5, "m", map_of(6, "string", 7, "float")),
        ),
        rows=[{1: {2: 1}, 3: [1, None], 5: [("k", 0.5)]}, {1: None, 3: None, 5: None}, {1: {2: None}, 3: [], 5: []}],
        requested=of(
            field(5, "m", map_of(6, "string", 7, "double")),
            field(3, "l", list_of(4, "long")),
            field(1, "s", struct(field(2, "i", "long"))),
        ),
        expected=[
            {5: [("k", 0.5)], 3: [1, None], 1: {2: 1}},
            {5: None, 3: None, 1: None},
            {5: [], 3: [], 1: {2: None}},
        ],
    ),
    Case(
        name="structs in lists and maps",
        written=of(
            field(1, "items", list_of(2, struct(field(3, "sku", "string"), field(4, "qty", "int")))),
            field(5, "m", map_of(6, "string", 7, struct(field(8, "n", "int")))),
        ),
        rows=[{1: [{3: "a", 4: 1}, {3: None, 4: 2}], 5: [("k", {8: 1})]}, {1: [], 5: []}],
        requested=of(
            field(
                1,
                "items",
                list_of(2, struct(field(9, "unit", "string"), field(4, "amount", "long"), field(3, "sku", "string"))),
            ),
            field(5, "m", map_of(6, "string", 7, struct(field(8, "n", "long"), field(10, "o", "string")))),
        ),
        expected=[
            {1: [{9: None, 4: 1, 3: "a"}, {9: None, 4: 2, 3: None}], 5: [("k", {8: 1, 10: None})]},
            {1: [], 5: []},
        ],
    ),
    Case(
        name="null lists and maps of structs",
        written=of(
            field(1, "l", list_of(2, struct(field(3, "x", "int")))),
            field(5, "m", map_of(6, "string", 7, struct(field(8, "n", "int")))),
        ),
        rows=[{1: None, 5: None}, {1: [None], 5: [("k", None)]}],
        requested=of(
            field(1, "l", list_of(2, struct(field(4, "y", "int"), field(3, "x", "int")))),
            field(5, "m", map_of(6, "string", 7, struct(field(8, "n", "long")))),
        ),
        expected=[{1: None, 5: None}, {1: [None], 5: [("k", None)]}],
        lags=("pyiceberg",),
    ),
    Case(
        name="initial defaults",
        written=of(field(1, "a", "int")),
        rows=[{1: 1}, {1: None}],
        requested=of(
            field(1, "a", "int"),
            field(2, "s", "string", True, initial="web", write="app"),
            field(3, "n", "long", initial=7),
            field(4, "b", "boolean", initial=True),
            field(5, "d", "double", initial=0.5),
            field(6, "day", "date", initial="2017-11-16"),
        ),
        expected=[
            {1: 1, 2: "web", 3: 7, 4: True, 5: 0.5, 6: 17486},
            {1: None, 2: "web", 3: 7, 4: True, 5: 0.5, 6: 17486},
        ],
        version=3,
    ),
    Case(
        name="missing struct without default",
        written=of(field(9, "z", "int")),
        rows=[{9: 1}],
        requested=of(field(9, "z", "int"), field(1, "point", POINT)),
        expected=[{9: 1, 1: None}],
        version=3,
    ),
    Case(
        name="missing child with default",
        written=of(field(9, "z", "int"), field(1, "point", struct(field(2, "x", "int")))),
        rows=[{9: 1, 1: {2: 3}}, {9: 2, 1: None}],
        requested=of(field(9, "z", "int"), field(1, "point", POINT)),
        expected=[{9: 1, 1: {2: 3, 3: 0}}, {9: 2, 1: None}],
        version=3,
    ),
    Case(
        name="missing struct with default",
        written=of(field(9, "z", "int")),
        rows=[{9: 1}],
        requested=of(field(9, "z", "int"), field(1, "point", POINT, initial={})),
        expected=[{9: 1, 1: {2: 0, 3: 0}}],
        version=3,
        lags=("pyiceberg", "duckdb"),
    ),
    Case(
        name="identity partition value",
        written=of(field(1, "a", "int")),
        rows=[{1: 1}],
        requested=of(field(1, "a", "int"), field(2, "region", "string", initial="EU")),
        expected=[{1: 1, 2: "US"}],
        version=3,
        spec=[identity(2, "region")],
        partition={2: part("string", "US")},
    ),
    Case(
        name="identity partition column in the file",
        written=of(field(1, "a", "int"), field(2, "region", "string")),
        rows=[{1: 1, 2: "US"}],
        requested=of(field(1, "a", "int"), field(2, "land", "string")),
        expected=[{1: 1, 2: "US"}],
        spec=[identity(2, "land")],
        partition={2: part("string", "US")},
    ),
    Case(
        name="name mapping",
        written=of(field(91, "id", "int"), field(92, "b", "string")),
        rows=[{91: 1, 92: "x"}],
        requested=of(field(2, "c", "string"), field(1, "key", "long"), field(5, "e", "int")),
        expected=[{2: "x", 1: 1, 5: None}],
        ids=False,
        mapping="""[{"field-id": 1, "names": ["record_id", "id"]}, {"field-id": 2, "names": ["b"]},
          {"field-id": 5, "names": []}]""",
    ),
    Case(
        name="name mapping of structs",
        written=of(field(91, "id", "int"), field(93, "s", struct(field(94, "x", "int")))),
        rows=[{91: 1, 93: {94: 7}}, {91: 2, 93: None}],
        requested=of(field(3, "t", struct(field(4, "y", "long"))), field(1, "id", "int")),
        expected=[{3: {4: 7}, 1: 1}, {3: None, 1: 2}],
        ids=False,
        mapping="""[{"field-id": 1, "names": ["id"]},
          {"field-id": 3, "names": ["s"], "fields": [{"field-id": 4, "names": ["x"]}]}]""",
        lags=("duckdb",),
    ),
    Case(
        name="file columns that the table lacks",
        written=of(field(91, "id", "int"), field(92, "junk", "string")),
        rows=[{91: 1, 92: "x"}],
        requested=of(field(1, "id", "int"), field(2, "junk", "string")),
        expected=[{1: 1, 2: None}],
        ids=False,
        mapping='[{"field-id": 1, "names": ["id"]}, {"names": ["junk"]}]',
        lags=("pyiceberg",),
    ),
    Case(
        name="name mapping with dots",
        written=of(field(91, "a.b", "int"), field(92, "c", "int")),
        rows=[{91: 1, 92: 2}],
        requested=of(field(1, "x", "int"), field(2, "y", "int")),
        expected=[{1: 1, 2: 2}],
        ids=False,
        mapping='[{"field-id": 1, "names": ["a.b"]}, {"field-id": 2, "names": ["c"]}]',
    ),
    Case(
        name="name mapping of lists and maps",
        written=of(field(91, "l", list_of(92, "int")), field(93, "m", map_of(94, "string", 95, "int"))),
        rows=[{91: [1], 93: [("k", 2)]}],
        requested=of(field(4, "n", map_of(5, "string", 6, "long")), field(1, "l", list_of(2, "long"))),
        expected=[{4: [("k", 2)], 1: [1]}],
        ids=False,
        mapping="""[{"field-id": 1, "names": ["l"], "fields": [{"field-id": 2, "names": ["element"]}]},
          {"field-id": 4, "names": ["m"], "fields": [
            {"field-id": 5, "names": ["key"]}, {"field-id": 6, "names": ["value"]}]}]""",
    ),
    Case(
        name="files with ids ignore the mapping",
        written=of(field(1, "a", "int"), field(3, "c", "int")),
        rows=[{1: 1, 3: 3}],
        requested=of(field(2, "a", "int"), field(3, "c", "int")),
        expected=[{2: None, 3: 3}],
        mapping='[{"field-id": 2, "names": ["a"]}]',
    ),
    Case(
        name="unknown becomes string",
        written=of(field(1, "a", "int"), field(2, "u", "unknown")),
        rows=[{1: 1, 2: None}],
        requested=of(field(1, "a", "int"), field(2, "u", "string")),
        expected=[{1: 1, 2: None}],
        version=3,
    ),
    Case(
        name="struct whose children are all new",
        written=of(field(1, "s", struct(field(2, "x", "int"))), field(9, "z", "int")),
        rows=[{1: {2: 1}, 9: 1}, {1: None, 9: 2}],
        requested=of(field(1, "s", struct(field(3, "y", "int"))), field(9, "z", "int")),
        expected=[{1: {3: None}, 9: 1}, {1: None, 9: 2}],
    ),
    Case(
        name="all primitive types",
        written=of(
            field(1, "b", "boolean"),
            field(2, "s", "string"),
            field(3, "u", "uuid"),
            field(4, "x", "fixed[3]"),
            field(5, "y", "binary"),
            field(6, "d", "date"),
            field(7, "t", "time"),
            field(8, "ts", "timestamp"),
            field(9, "tz", "timestamptz"),
        ),
        rows=[{1: True, 2: "ü", 3: U, 4: b"abc", 5: b"\0", 6: 17486, 7: 1, 8: 10**15, 9: 10**15}],
        requested=of(
            field(9, "tz", "timestamptz"),
            field(8, "ts", "timestamp"),
            field(7, "t", "time"),
            field(6, "d", "date"),
            field(5, "y", "binary"),
            field(4, "x", "fixed[3]"),
            field(3, "u", "uuid"),
            field(2, "s", "string"),
            field(1, "b", "boolean"),
        ),
        expected=[{9: 10**15, 8: 10**15, 7: 1, 6: 17486, 5: b"\0", 4: b"abc", 3: U, 2: "ü", 1: True}],
    ),
]
