"""Files without field IDs and a client that moves names: what PyIceberg reads before and after (ICE607)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import BadRequestError
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import LongType, NestedField, StringType

from tests.backends import LOCAL_ONLY

pytestmark = LOCAL_ONLY


@pytest.fixture
def imported(catalog: Catalog, tmp_path: Path) -> Table:
    """A table whose only file has no field IDs; its column v is renamed to w, as clients do it."""
    catalog.create_namespace_if_not_exists("mapped")
    name = f"mapped.{tmp_path.name.replace('-', '_')}"
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "v", StringType()))
    table = catalog.create_table(name, schema)
    file = Path(table.location().removeprefix("file://")) / "data" / "plain.parquet"
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": pa.array([1], pa.int64()), "v": ["old"]}), file)
    table.add_files([str(file)])
    with table.update_schema() as update:
        update.rename_column("v", "w")
    return table


def test_a_new_column_does_not_get_the_values_of_a_renamed_one(imported: Table) -> None:
    """The client's commit would move the name v; it is refused with the ways out, and w keeps its values."""
    update = imported.update_schema().add_column("v", StringType())
    with pytest.raises(BadRequestError, match=r"ICE607 mapped-name-moved.*Use another name"):
        update.commit()
    imported.refresh()
    assert imported.scan().to_arrow().to_pylist() == [{"id": 1, "w": "old"}]


def test_a_new_column_under_another_name_is_empty(imported: Table) -> None:
    """The first way out."""
    with imported.update_schema() as update:
        update.add_column("x", StringType())
    assert imported.scan().to_arrow().to_pylist() == [{"id": 1, "w": "old", "x": None}]


def test_a_plan_adds_the_column_and_keeps_the_values_apart(imported: Table, catalog: Catalog) -> None:
    """The server's own plan leaves v with the renamed column, and files without IDs read as they did."""
    namespace, name = imported.name()
    answer = catalog._session.post(  # type: ignore[attr-defined]
        f"{catalog.uri}/icekeel/v1/default/namespaces/{namespace}/tables/{name}/evolution/apply",  # type: ignore[attr-defined]
        json={"operations": [{"op": "add", "path": "v", "type": "string"}]},
    )
    assert answer.status_code == 200, answer.text
    imported.refresh()
    assert imported.scan().to_arrow().to_pylist() == [{"id": 1, "w": "old", "v": None}]
