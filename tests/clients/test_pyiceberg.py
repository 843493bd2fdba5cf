"""PyIceberg beyond the bookshop: everything else that its catalog and table classes send over REST."""

from __future__ import annotations

import time
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable, Table
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType, TimestampType

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "name", StringType(), required=False),
    NestedField(3, "at", TimestampType(), required=False),
    identifier_field_ids=[1],
)


@pytest.fixture(scope="module")
def space(catalog: Catalog) -> str:
    catalog.create_namespace("py")
    return "py"


def rows(*ids: int, name: str = "n") -> pa.Table:
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "name": [name] * len(ids),
            "at": pa.array([None] * len(ids), pa.timestamp("us")),
        },
        schema=pa.schema([pa.field("id", pa.int64(), False), ("name", pa.string()), ("at", pa.timestamp("us"))]),
    )


def ids(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def test_namespaces(catalog: Catalog) -> None:
    """Create, list, describe, change and drop, two levels deep; errors have their own classes."""
    catalog.create_namespace("deep", {"owner": "me"})
    catalog.create_namespace(("deep", "er"))
    assert ("deep",) in catalog.list_namespaces()
    assert catalog.list_namespaces("deep") == [("deep", "er")]
    summary = catalog.update_namespace_properties("deep", removals={"owner", "absent"}, updates={"a": "b"})
    assert (summary.removed, summary.updated, summary.missing) == (["owner"], ["a"], ["absent"])
    assert catalog.load_namespace_properties("deep")["a"] == "b"
    with pytest.raises(NamespaceAlreadyExistsError):
        catalog.create_namespace("deep")
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace("deep")
    with pytest.raises(NoSuchNamespaceError):
        catalog.load_namespace_properties("nowhere")
    assert catalog.namespace_exists(("deep", "er")) and not catalog.namespace_exists("nowhere")
    catalog.drop_namespace(("deep", "er"))
    catalog.drop_namespace("deep")


def test_a_table_with_partitions_order_and_identifiers(catalog: Catalog, space: str) -> None:
    """Spec, order and identifier fields come back bound to the right columns."""
    table = catalog.create_table(
        f"{space}.full",
        SCHEMA,
        partition_spec=PartitionSpec(
            PartitionField(1, 1000, BucketTransform(4), "id_bucket"), PartitionField(3, 1001, DayTransform(), "day")
        ),
        sort_order=SortOrder(SortField(2, transform=IdentityTransform())),
        properties={"k": "v"},
    )
    fresh = catalog.load_table(f"{space}.full")
    assert fresh.metadata == table.metadata
    assert [(f.source_id, str(f.transform)) for f in fresh.spec().fields] == [(1, "bucket[4]"), (3, "day")]
    assert [f.source_id for f in fresh.sort_order().fields] == [2]
    assert fresh.schema().identifier_field_ids == [1]
    assert fresh.properties["k"] == "v"
    with fresh.update_spec() as spec:
        spec.remove_field("day")
        spec.add_identity("name")
    assert [f.name for f in fresh.spec().fields] == ["id_bucket", "name"]
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table(f"{space}.full", SCHEMA)


def test_append_overwrite_delete_upsert(catalog: Catalog, space: str) -> None:
    """Every way to write rows commits."""
    table = catalog.create_table(f"{space}.writes", SCHEMA)
    table.append(rows(1, 2, 3))
    table.delete("id = 2")
    assert ids(table) == [1, 3]
    done = table.upsert(rows(3, 4, name="new"))
    assert (done.rows_updated, done.rows_inserted) == (1, 1)
    table.overwrite(rows(9), overwrite_filter="id = 1")
    assert ids(table) == [3, 4, 9]
    assert ids(catalog.load_table(f"{space}.writes")) == [3, 4, 9]


def test_a_transaction_is_one_commit(catalog: Catalog, space: str) -> None:
    """Schema, properties and rows of one transaction appear together."""
    table = catalog.create_table(f"{space}.together", SCHEMA)
    before = len(table.metadata.metadata_log)
    with table.transaction() as transaction:
        with transaction.update_schema() as update:
            update.add_column("extra", StringType())
        transaction.set_properties(k="v")
        transaction.append(rows(1))
    fresh = catalog.load_table(f"{space}.together")
    assert len(fresh.metadata.metadata_log) == before + 1
    assert (ids(fresh), fresh.properties["k"]) == ([1], "v")
    assert fresh.metadata.snapshots[0].schema_id == fresh.metadata.current_schema_id == 1


def test_a_staged_create(catalog: Catalog, space: str) -> None:
    """create_table_transaction shows nothing until it commits, then everything."""
    with catalog.create_table_transaction(f"{space}.staged", SCHEMA) as transaction:
        with transaction.update_schema() as update:
            update.add_column("extra", StringType())
        assert not catalog.table_exists(f"{space}.staged")
    table = catalog.load_table(f"{space}.staged")
    assert [f.name for f in table.schema().fields] == ["id", "name", "at", "extra"]
    assert table.metadata.last_column_id == 4


def test_branches_and_tags(catalog: Catalog, space: str) -> None:
    """A branch is written and dropped, a tag holds its snapshot, expiry and rollback move main."""
    table = catalog.create_table(f"{space}.branches", SCHEMA)
    table.append(rows(1))
    first = table.metadata.current_snapshot_id
    assert first is not None
    table.manage_snapshots().create_tag(first, "v1").create_branch(first, "audit").commit()
    table.append(rows(2), branch="audit")
    assert ids(table) == [1]
    assert table.scan().use_ref("audit").to_arrow().num_rows == 2
    table.append(rows(3))
    assert set(table.refs()) == {"main", "v1", "audit"}
    table.manage_snapshots().remove_branch("audit").remove_tag("v1").commit()
    assert set(catalog.load_table(f"{space}.branches").refs()) == {"main"}


def test_a_stale_writer_is_told(catalog: Catalog, space: str) -> None:
    """Two handles change the schema; the stale one gets CommitFailedException and the first change stays."""
    one = catalog.create_table(f"{space}.stale", SCHEMA)
    other = catalog.load_table(f"{space}.stale")
    with one.update_schema() as update:
        update.add_column("a", StringType())
    with pytest.raises(CommitFailedException, match="Requirement failed"), other.update_schema() as update:
        update.add_column("b", StringType())
    assert [f.name for f in catalog.load_table(f"{space}.stale").schema().fields] == ["id", "name", "at", "a"]


def test_rename_register_and_drop(catalog: Catalog, space: str) -> None:
    """A renamed table keeps its data, a dropped one can be registered again, missing ones have their own error."""
    table = catalog.create_table(f"{space}.old", SCHEMA)
    table.append(rows(1))
    moved = catalog.rename_table(f"{space}.old", f"{space}.new")
    assert (ids(moved), moved.metadata.table_uuid) == ([1], table.metadata.table_uuid)
    with pytest.raises(NoSuchTableError):
        catalog.load_table(f"{space}.old")
    catalog.drop_table(f"{space}.new")
    again = catalog.register_table(f"{space}.again", moved.metadata_location)
    assert ids(again) == [1]
    assert (space, "again") in catalog.list_tables(space)
    with pytest.raises(NoSuchTableError):
        catalog.drop_table(f"{space}.nowhere")


def test_purge(catalog: Catalog, space: str) -> None:
    """purge_table removes the metadata files, soon."""
    table = catalog.create_table(f"{space}.purged", SCHEMA)
    table.append(rows(1))
    folder = Path(unquote(urlsplit(table.location()).path))
    catalog.purge_table(f"{space}.purged")
    deadline = time.monotonic() + 20
    while list(folder.rglob("*.metadata.json")):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_large_table_travels_compressed(catalog: Catalog, space: str) -> None:
    """PyIceberg takes gzip and unpacks it: create, write, load and evolve a table whose document is large."""
    name = f"{space}.large"
    wide = Schema(*SCHEMA.fields, *(NestedField(n, f"column_{n}", StringType()) for n in range(4, 1500)))
    made = catalog.create_table(name, wide, properties={"write.metadata.compression-codec": "gzip"})
    made.append(rows(1, 2))
    with made.update_schema() as update:
        update.rename_column("column_9", "ninth")
    loaded = catalog.load_table(name)
    assert ids(loaded) == [1, 2]
    assert loaded.metadata == made.refresh().metadata
    assert loaded.schema().find_field("ninth").field_id == 9
    assert loaded.metadata_location.endswith(".gz.metadata.json")
    assert StaticTable.from_metadata(loaded.metadata_location).metadata == loaded.metadata
