"""Clients with S3 keys of their own, on a warehouse that hands none out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

from tests.backends import BUCKET, LOCAL_ONLY, REGION, options
from tests.clients.duck import Duck
from tests.seaweedfs import S3
from tests.server import Server

pytestmark = LOCAL_ONLY


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, s3: S3) -> Iterator[Server]:
    """A server whose default warehouse lies on S3, with keys that stay with it."""
    settings = {"WAREHOUSE": f"s3://{BUCKET}/own-keys", "WAREHOUSE_OPTIONS": json.dumps(options(s3))}
    with Server(tmp_path_factory.mktemp("own-keys") / "home", settings=settings) as running:
        yield running


def test_duckdb_attached_as_the_readme_says_writes_with_its_users_secret(
    lake: Server, s3: S3, duckdb_extensions: Path
) -> None:
    """CTAS, CREATE, INSERT and SELECT need no flag: nothing sent with a table hides the secret."""
    duck = Duck(lake.url, duckdb_extensions)
    duck.run(
        f"CREATE SECRET (TYPE s3, KEY_ID '{s3.access_key}', SECRET '{s3.secret_key}', REGION '{REGION}', "
        f"ENDPOINT '{s3.endpoint.partition('://')[2]}', USE_SSL false, URL_STYLE 'path')"
    )
    duck.run("CREATE SCHEMA ice.duck")
    assert duck.run("CREATE TABLE ice.duck.made AS SELECT range AS i FROM range(10)") == [(10,)]
    duck.run("CREATE TABLE ice.duck.filled (i BIGINT)")
    assert duck.run("INSERT INTO ice.duck.filled SELECT i FROM ice.duck.made") == [(10,)]
    assert duck.run("SELECT count(*), sum(i) FROM ice.duck.filled") == [(10, 45)]
    duck.close()


def test_pyiceberg_learns_the_endpoint_from_the_catalog_and_brings_its_keys(lake: Server, s3: S3) -> None:
    """Endpoint, region and style are told once, with the configuration."""
    keys = {"s3.access-key-id": s3.access_key, "s3.secret-access-key": s3.secret_key}
    catalog = load_catalog("icekeel", type="rest", uri=lake.url, **keys)
    catalog.create_namespace_if_not_exists("py")
    rows = pa.table({"i": [1, 2]})
    catalog.create_table("py.t", schema=rows.schema).append(rows)
    assert catalog.load_table("py.t").scan().to_arrow()["i"].to_pylist() == [1, 2]
