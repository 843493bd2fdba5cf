"""Other readers on the same tables: PyIceberg in every test run, DuckDB where it is installed.

Rules and reader must not share one misreading of the spec, so the reader is itself compared with readers that other
people wrote, on real tables with real files.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import StaticTable

from app.iceberg.name_mapping import NAME_MAPPING_PROPERTY, parse_name_mapping
from tests.projection.cases import CASES, Case
from tests.projection.lake import StoredFile, plain, write_lake
from tests.projection.oracle.arrow import read_parquet
from tests.projection.parquet_files import rows

WITH_NAMES = pytest.mark.parametrize("case", CASES, ids=[case.name.replace(" ", "-") for case in CASES])


@WITH_NAMES
def test_our_reader_reads_the_right_rows(case: Case) -> None:
    """Every table of the list."""
    mapping = None if case.mapping is None else parse_name_mapping(case.mapping)
    assert rows(read_parquet(case.file(), case.requested, mapping, case.partition), case.requested) == case.expected


@WITH_NAMES
def test_pyiceberg_reads_the_same_values(case: Case, tmp_path: Path) -> None:
    """From the metadata file, as any table."""
    _skip_if_behind(case, "pyiceberg")
    table = StaticTable.from_metadata(str(_lake(case, tmp_path))).scan().to_arrow()
    assert plain(table.to_pylist()) == _ours(case)


@pytest.fixture(scope="module")
def duckdb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    engine = pytest.importorskip("duckdb")
    extensions = pytest.importorskip("duckdb_extensions")
    folder = str(tmp_path_factory.mktemp("extensions"))
    connection = engine.connect(config={"extension_directory": folder, "autoinstall_known_extensions": "false"})
    for name in ("avro", "httpfs", "iceberg"):
        extensions.import_extension(name, con=connection)
        connection.execute(f"LOAD {name}")
    connection.execute("SET TimeZone = 'UTC'")
    yield connection
    connection.close()


@pytest.mark.engines
@WITH_NAMES
def test_duckdb_reads_the_same_values(case: Case, tmp_path: Path, duckdb: Any) -> None:
    """From the metadata file, without a catalog."""
    _skip_if_behind(case, "duckdb")
    table = duckdb.execute(f"SELECT * FROM iceberg_scan('{_lake(case, tmp_path)}')").to_arrow_table()
    assert plain(table.to_pylist()) == _ours(case)


def _skip_if_behind(case: Case, reader: str) -> None:
    if reader in case.lags:
        pytest.skip(f"{reader} does not follow the spec here yet")


def _lake(case: Case, folder: Path) -> Path:
    properties = {} if case.mapping is None else {NAME_MAPPING_PROPERTY: case.mapping}
    partition = tuple(case.partition[part["source-id"]].value for part in case.spec)
    files = [StoredFile(case.file(), partition)]
    return write_lake(folder / "t", case.requested, files, version=case.version, spec=case.spec, properties=properties)


def _ours(case: Case) -> Any:
    mapping = None if case.mapping is None else parse_name_mapping(case.mapping)
    return plain(read_parquet(case.file(), case.requested, mapping, case.partition).to_pylist())
