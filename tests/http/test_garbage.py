"""A server that dies between writing a metadata file and moving the pointer, and what clears up after it."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from app.cli import main
from tests.backends import LOCAL_ONLY
from tests.http.samples import namespace, schema, table
from tests.server import Server

MakeServer = Callable[..., Server]
pytestmark = LOCAL_ONLY


def die_while(server: Server, request: Callable[[httpx.Client], object], written: Callable[[], list[Path]]) -> Path:
    """Hold the database so that the request gets as far as its file, kill -9, and let go; the file that is left."""
    before = set(written())

    def send() -> None:
        with server.client() as http, suppress(httpx.TransportError):
            request(http)

    holder = sqlite3.connect(server.home / "icekeel.db", isolation_level=None)
    try:
        holder.execute("BEGIN IMMEDIATE")
        thread = threading.Thread(target=send)
        thread.start()
        deadline = time.monotonic() + 20
        while not (left := [path for path in written() if path not in before]):
            assert time.monotonic() < deadline, "the file was never written"
            time.sleep(0.01)
        server.kill()
        thread.join()
        holder.execute("ROLLBACK")
    finally:
        holder.close()
    return left[0]


def collect(
    server: Server, capsys: pytest.CaptureFixture[str], *more: str
) -> tuple[int, dict[str, list[dict[str, str]]]]:
    capsys.readouterr()
    code = main(["gc", "--home", str(server.home), "--format", "json", *more])
    return code, json.loads(capsys.readouterr().out)


def age(folder: Path) -> None:
    past = time.time() - 3 * 24 * 3600
    for path in folder.rglob("*"):
        os.utime(path, (past, past))


def files(server: Server) -> list[Path]:
    return list(server.warehouse.rglob("*.metadata.json"))


def test_the_file_of_a_commit_that_died_is_found_and_deleted(
    make_server: MakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table stands where it stood; the file is left alone while it is young, told of, then deleted."""
    server = make_server()
    with server.client() as http:
        ns = namespace(http)
        made = table(http, ns)
    path = f"/v1/namespaces/{ns}/tables/{made['name']}"
    update = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "1"}}]}
    left = die_while(server, lambda http: http.post(path, json=update), lambda: files(server))
    server.start()
    with server.client() as http:
        assert http.get(path).json()["metadata-location"] == made["metadata-location"]
        assert collect(server, capsys) == (0, {"tables": 1, "garbage": [], "kept": [], "deleted": 0, "complete": True})
        age(server.warehouse)
        code, told = collect(server, capsys)
        assert (
            code == 1 and [urlsplit(each["location"]).path for each in told["garbage"]] == [str(left)] and left.exists()
        )
        code, told = collect(server, capsys, "--delete")
        assert code == 0 and told["deleted"] == 1 and not left.exists()
        assert collect(server, capsys, "--delete")[1]["garbage"] == []
        assert http.post(path, json=update).status_code == 200
        assert http.get(path).json()["metadata"]["properties"]["a"] == "1"


def test_the_file_of_a_create_that_died_is_found_and_deleted(
    make_server: MakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody ever saw that table; its name is free, and the table that takes it is not touched."""
    server = make_server()
    with server.client() as http:
        ns = namespace(http)
        table(http, ns, "beside")
    body = {"name": "late", "schema": schema("note")}
    left = die_while(server, lambda http: http.post(f"/v1/namespaces/{ns}/tables", json=body), lambda: files(server))
    server.start()
    with server.client() as http:
        assert http.get(f"/v1/namespaces/{ns}/tables/late").status_code == 404
        table(http, ns, "late")
        age(server.warehouse)
        code, told = collect(server, capsys, "--delete")
        assert code == 0 and told["deleted"] == 1 and not left.exists()
        assert http.get(f"/v1/namespaces/{ns}/tables/late").status_code == 200
        assert http.get(f"/v1/namespaces/{ns}/tables/beside").status_code == 200


def test_the_text_form_says_what_to_do(make_server: MakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    """For people: one line for each file, then the sum."""
    server = make_server()
    assert main(["gc", "--home", str(server.home), "--warehouse", "default"]) == 0
    assert (
        capsys.readouterr().out == "0 tables and views, 0 files of garbage, 0 bytes, nothing deleted; --delete does\n"
    )
    assert main(["gc", "--home", str(server.home), "--warehouse", "nope"]) == 2
    assert "Warehouse does not exist: nope" in capsys.readouterr().err
