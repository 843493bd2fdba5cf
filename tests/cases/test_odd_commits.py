"""Odd snapshot IDs in commits and registrations: whatever is taken loads again from its file, in a new process."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from tests.cases.shorthand import schema
from tests.cases.wire import Catalog, Table, add_snapshot, assert_ref, error_of, ok, set_ref, snapshot
from tests.server import Server

Json = Any
Namespace = tuple[str, ...]
SIMPLE = schema("1:id long!, 2:v string")
ODD = (-1, -2, 0, -(2**63), 2**63 - 1, 2**63)


def numbered(table: Table, version: int, number: int, snapshot_id: int, parent: int | None) -> Json:
    """The `number`-th snapshot that a writer adds, with what its format version asks for."""
    made = table.snap(snapshot_id, parent, 0 if version == 1 else number)
    return add_snapshot(made | ({"first-row-id": number, "added-rows": 1} if version == 3 else {}))


def odd_commits(catalog: Catalog, ns: Namespace) -> None:
    """A table for each odd ID and way to use it; commits are taken or refused as the server likes."""
    for version, odd, branch in itertools.product((1, 2, 3), ODD, ("main", "audit")):
        table = catalog.create(ns, SIMPLE, version=version)
        attempts = [
            [numbered(table, version, 1, odd, -1), set_ref(branch, odd)],
            [numbered(table, version, 2, 5, None), set_ref("tag", 5, "tag")],
            [set_ref("audit", odd, **{"max-ref-age-ms": odd})],
            [numbered(table, version, 3, 6, odd), set_ref("main", 6)],
            [{"action": "remove-snapshots", "snapshot-ids": [5, odd]}],
        ]
        answers = [table.post([], updates) for updates in attempts]
        assert {answer.status_code for answer in answers} <= {200, 400, 409}
        assert (answers[0].status_code == 200) == (odd not in (-1, 2**63)), odd


def test_whatever_was_committed_loads_in_a_new_process(tmp_path: Path) -> None:
    """After a restart every table answers what it answered before, and takes the next commit."""
    home = tmp_path / "home"
    with Server(home) as server:
        with server.client() as http:
            catalog = Catalog(http, server.warehouse)
            ns = catalog.namespace()
            odd_commits(catalog, ns)
            names = [item["name"] for item in ok(http.get(f"{catalog.namespace_path(ns)}/tables"))["identifiers"]]
            before = {name: catalog.table(ns, name).metadata() for name in names}
        assert len(before) == 36
        server.settings["DOCUMENT_CACHE"] = "0"
        server.restart()
        with server.client() as http:
            catalog = Catalog(http, server.warehouse)
            for name, metadata in before.items():
                table = catalog.table(ns, name)
                assert table.metadata() == metadata
                table.commit([{"action": "set-properties", "updates": {"a": "1"}}])


def test_a_first_snapshot_with_parent_minus_one(catalog: Catalog, ns: Namespace) -> None:
    """Is a first snapshot."""
    table = catalog.create(ns, SIMPLE)
    first = table.snap(1, parent=-1)
    after = table.commit([add_snapshot(first), set_ref("main", 1)], [assert_ref("main", -1)])
    assert "parent-snapshot-id" not in after["snapshots"][0]


@pytest.mark.parametrize("refs", [{"main": 1}, {}])
def test_a_snapshot_minus_one_is_not_registered(catalog: Catalog, ns: Namespace, refs: Json) -> None:
    """No commit could name it; the error gives the place."""
    document = catalog.document(SIMPLE, snapshots=[snapshot("", -1)], **({"main": -1} if refs else {}))
    error = error_of(catalog.post_register(ns, "t", catalog.write_metadata(document)), 400)
    assert "$.refs.main" in error["message"] or "$.snapshots[0].snapshot-id" in error["message"]
