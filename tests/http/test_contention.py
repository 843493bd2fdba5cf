"""Many writers of one table, as engines are: load, prepare, commit, and after a 409 back off and start over."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.http.conftest import MakeServer
from tests.http.samples import namespace, table

WRITERS, APPENDS = 12, 20
PATIENCE = 200
BACKOFF_S, LONGEST_BACKOFF_S = 0.1, 1.0


def append(metadata: dict[str, Any]) -> dict[str, Any]:
    """A commit that stands only on the snapshot that was loaded."""
    made = random.getrandbits(62)
    head = metadata["refs"]["main"]["snapshot-id"] if metadata["refs"] else None
    snapshot = {
        "snapshot-id": made,
        "sequence-number": metadata["last-sequence-number"] + 1,
        "timestamp-ms": metadata["last-updated-ms"],
        "manifest-list": f"{metadata['location']}/metadata/snap-{made}.avro",
        "summary": {"operation": "append"},
        "schema-id": metadata["current-schema-id"],
    }
    if head is not None:
        snapshot["parent-snapshot-id"] = head
    return {
        "requirements": [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": head}],
        "updates": [
            {"action": "add-snapshot", "snapshot": snapshot},
            {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": made},
        ],
    }


def test_writers_of_one_table_take_turns(make_server: MakeServer) -> None:
    """Each gets all of its appends through, and few commits are refused after the ones that began the fight."""
    server = make_server()
    with server.client() as http:
        ns = namespace(http)
        name = table(http, ns)["name"]
    path = f"/v1/namespaces/{ns}/tables/{name}"

    def write(_: int) -> int:
        refused = 0
        with server.client() as http:
            for _ in range(APPENDS):
                backoff = BACKOFF_S
                for _ in range(PATIENCE):
                    answer = http.post(path, json=append(http.get(path).json()["metadata"]))
                    if answer.status_code == 200:
                        break
                    assert answer.status_code == 409, answer.text
                    refused += 1
                    time.sleep(random.uniform(backoff / 2, backoff))
                    backoff = min(2 * backoff, LONGEST_BACKOFF_S)
                assert answer.status_code == 200, answer.text
        return refused

    with ThreadPoolExecutor(WRITERS) as pool:
        refused = sum(pool.map(write, range(WRITERS)))
    with server.client() as http:
        snapshots = http.get(path).json()["metadata"]["snapshots"]
        contested = http.get("/metrics").text
    assert len(snapshots) == WRITERS * APPENDS
    assert refused <= 3 * WRITERS
    assert ("icekeel_contested_tables 0" not in contested) == (refused > 0)
