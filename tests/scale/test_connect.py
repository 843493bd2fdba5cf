"""`icekeel connect`: what it prints runs as it is, against a warehouse on S3 that hands out its keys.

The engine is given nothing beside the snippet: no flag, no environment variable, no file.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

from app.cli import main
from app.cli.connect import ENGINES
from tests.backends import Scaled, options
from tests.cases.wire import ok, unique
from tests.clients.duck import Duck
from tests.clients.spark import Spark
from tests.server import ROOT, Server

ROWS = 3
CHANGES_ARRIVE_S = 2.1
"""Other replicas may serve the warehouse as it was for two seconds."""


def make_lake(http: httpx.Client, server: Server, backend: Scaled, **more: str) -> str:
    """A warehouse that hands out its keys, with a table of three rows in it, written by PyIceberg without any flag."""
    name = unique("connect-")
    storage = {**options(backend.s3), "icekeel.client.keys": "true"}
    made = {"name": name, "location": f"s3://lake/{name}", "storage": storage, "properties": more}
    ok(http.post("/icekeel/v1/warehouses", json=made))
    catalog = load_catalog("icekeel", type="rest", uri=server.url, warehouse=name)
    catalog.create_namespace("shop")
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "what": ["a", "b", "c"]})
    catalog.create_table("shop.orders", schema=rows.schema).append(rows)
    return name


@pytest.fixture(scope="module")
def lake(server: Server, operator: Server, backend: Scaled) -> str:
    with operator.client() as http:
        return make_lake(http, server, backend)


def printed(server: Server, engine: str, warehouse: str, capsys: pytest.CaptureFixture[str], *more: str) -> str:
    capsys.readouterr()
    assert main(["connect", engine, "--warehouse", warehouse, "--uri", server.url, *more]) == 0
    return capsys.readouterr().out


def bare() -> dict[str, str]:
    """An environment that tells nothing of any store or catalog."""
    told = ("AWS_", "ICEKEEL_", "PYICEBERG_", "SAIL_", "AZURE_", "GOOGLE_")
    return {name: value for name, value in os.environ.items() if not name.startswith(told)}


def run_python(program: str, python: str = sys.executable, **environment: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "snippet.py"
        file.write_text(program)
        done = subprocess.run(
            [python, "-W", "ignore", str(file)], capture_output=True, text=True, timeout=300, check=False,
            env={**bare(), **environment},
        )  # fmt: skip
    assert done.returncode == 0, f"{program}\n---\n{done.stdout}\n{done.stderr[-3000:]}"
    return done.stdout


def test_pyiceberg(server: Server, lake: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The printed lines list namespaces; with the same catalog object a table is read and written."""
    snippet = printed(server, "pyiceberg", lake, capsys)
    more = "\nprint(catalog.load_table('shop.orders').scan().to_arrow().num_rows)"
    assert run_python(snippet + more).splitlines() == ["[('shop',)]", str(ROWS)]


def test_duckdb(server: Server, lake: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The printed SQL attaches; reading and writing then need nothing more."""
    statements = [
        line for line in printed(server, "duckdb", lake, capsys).splitlines() if not line.startswith("INSTALL")
    ]
    duck = Duck(server.url, tmp_path)
    try:
        duck.run("DETACH ice")
        results = [duck.run(statement) for statement in statements]
        assert any("orders" in map(str, row) for row in results[-1])
        assert duck.run("SELECT count(*) FROM icekeel.shop.orders") == [(ROWS,)]
        duck.run("CREATE TABLE icekeel.shop.ducks AS SELECT 7 AS x")
        assert duck.run("SELECT x FROM icekeel.shop.ducks") == [(7,)]
    finally:
        duck.close()


@pytest.mark.parametrize("engine", ENGINES)
def test_every_snippet_can_be_had_as_json(
    engine: str, server: Server, lake: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its language; and no secret of the warehouse is in any."""
    answer: Any = json.loads(printed(server, engine, lake, capsys, "--format", "json"))
    assert answer["engine"] == engine and answer["language"] in ("python", "sql", "properties")
    assert server.url in answer["snippet"] and lake in answer["snippet"]
    assert "testtest" not in answer["snippet"]


@pytest.mark.parametrize("engine", ENGINES)
def test_without_handed_out_keys_the_snippet_asks_for_the_readers_own(
    engine: str, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    """The default warehouse keeps its keys to itself."""
    snippet = printed(server, engine, "default", capsys)
    assert "<secret>" in snippet or "AWS_SECRET_ACCESS_KEY" in snippet or "given.get" in snippet


def test_a_token_is_named_and_not_printed(server: Server, lake: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Snippets are pasted into chats."""
    for engine in ENGINES:
        snippet = printed(server, engine, lake, capsys, "--token", "s3cr3t-t0ken")
        assert "s3cr3t-t0ken" not in snippet and "ICEKEEL_TOKEN" in snippet


def test_an_unknown_warehouse_is_the_servers_refusal(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1, one line."""
    assert main(["connect", "pyiceberg", "--warehouse", "nope", "--uri", server.url]) == 1
    assert "Warehouse does not exist: nope" in capsys.readouterr().err


# --- engines that are not among the test packages --------------------------------------------------------------------


def environment(name: str, *packages: str) -> str:
    """The Python of a virtual environment with the packages, kept between runs; skips where it cannot be made."""
    folder = ROOT / ".engines" / name
    python = folder / "bin" / "python"
    if not (folder / "installed").exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        done = subprocess.run(
            [str(python), "-m", "pip", "install", "--quiet", *packages],
            capture_output=True, text=True, timeout=1200, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            pytest.skip(f"{' '.join(packages)} could not be installed: {done.stderr[-300:]}")
        (folder / "installed").write_text(" ".join(packages))
    return str(python)


@pytest.mark.engines
def test_polars(server: Server, lake: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It opens files by itself, with the keys that came with the table."""
    python = environment("polars", "polars==2.1.0", "pyiceberg[pyarrow]==0.12.0")
    assert f"({ROWS}, 2)" in run_python(printed(server, "polars", lake, capsys), python)


@pytest.mark.engines
def test_sail(server: Server, lake: str, backend: Scaled, capsys: pytest.CaptureFixture[str]) -> None:
    """It takes no keys from a catalog: they are in its environment, the rest is in the snippet."""
    python = environment("sail", "pysail==0.7.2", "pyspark-client==4.2.0")
    keys = {"AWS_ACCESS_KEY_ID": backend.s3.access_key, "AWS_SECRET_ACCESS_KEY": backend.s3.secret_key}
    more = "\nprint(spark.sql('SELECT count(*) FROM shop.orders').collect()[0][0])"
    assert run_python(printed(server, "sail", lake, capsys) + more, python, **keys).splitlines()[-1] == str(ROWS)


@pytest.mark.engines
def test_chdb(server: Server, operator: Server, backend: Scaled, capsys: pytest.CaptureFixture[str]) -> None:
    """ClickHouse joins an endpoint from the catalog with every key, so this warehouse tells clients none."""
    python = environment("chdb", "chdb==4.4.0")
    with operator.client() as http:
        name = make_lake(http, server, backend)
        change = {"storage": {"icekeel.client.endpoint": "false"}}
        ok(http.patch(f"/icekeel/v1/warehouses/{name}", json=change))
    time.sleep(CHANGES_ARRIVE_S)
    snippet = printed(server, "chdb", name, capsys).replace("<endpoint of the store>", backend.s3.endpoint)
    program = (
        "from chdb import session\ns = session.Session()\n"
        f"for statement in {snippet!r}.split(';'):\n    if statement.strip(): print(s.query(statement))\n"
        "print(s.query('SELECT count() FROM icekeel.`shop.orders`'))"
    )
    assert run_python(program, python).split()[-1] == str(ROWS)


@pytest.mark.engines
def test_spark(server: Server, lake: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Java's own file layer takes endpoint, region, style and keys from the catalog; it reads and writes."""
    lines = printed(server, "spark", lake, capsys).splitlines()
    settings = dict(line.split(" ", 1) for line in lines)
    spark = Spark(server.url, tmp_path, s3=True, **settings)
    try:
        assert spark.sql("SELECT count(*) FROM shop.orders") == [[ROWS]]
        spark.sql("CREATE TABLE shop.sparks AS SELECT 7 AS x")
        assert spark.sql("SELECT x FROM shop.sparks") == [[7]]
    finally:
        spark.close()
