"""A recorded history of clients, replicas and failures holds no contradiction."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.backends import CANNOT_START, scaled
from tests.history.checker import faults
from tests.history.clients import NAMESPACE, Client, Shared
from tests.history.cluster import Nemesis, cluster, look

CLIENTS = 8


def run(folder: Path, operations: int, *, pause_s: float, every: bool, seed: int = 20260101) -> dict[str, object]:
    """Run the clients against the cluster, break things meanwhile, and judge; numbers of the run."""
    try:
        database = scaled().database
    except CANNOT_START as reason:
        pytest.skip(str(reason))
    began = time.monotonic()
    with cluster(folder) as servers:
        shared = Shared([server.url for server in servers], operations, rotate_after=80 if every else 250)
        with servers[0].client() as http:
            assert http.post("/v1/namespaces", json={"namespace": [NAMESPACE]}).status_code == 200
        founder = Client(0, shared, seed)
        for _ in range(4):
            founder.make_shared()
        founder.close()
        nemesis = Nemesis(servers, database, seed, pause_s)
        clients = [Client(number, shared, seed) for number in range(1, CLIENTS + 1)]
        for thread in (nemesis, *clients):
            thread.start()
        for client in clients:
            client.join()
        nemesis.finish()
        took = time.monotonic() - began
        found = look(shared, servers[0], every)
    (folder / "history.json").write_text(json.dumps([call.__dict__ for call in shared.calls]))
    assert shared.trouble == [] and nemesis.trouble == []
    assert faults(shared.calls, found) == []
    return {
        "operations": operations,
        "seconds": round(took, 1),
        "calls": dict(Counter(f"{call.kind} {call.outcome}" for call in shared.calls)),
        "struck": dict(Counter(nemesis.log)),
        "tables": len(found.versions),
    }


def test_five_hundred_operations(tmp_path: Path) -> None:
    """Eight clients, three replicas, kills of replicas and of the database; every metadata file is read."""
    numbers = run(tmp_path, 500, pause_s=2.0, every=True)
    print(numbers)
    calls = numbers["calls"]
    assert isinstance(calls, dict) and calls["commit ok"] > 50 and calls["transaction ok"] > 10
    assert numbers["struck"], "nothing was broken, so nothing was shown"


@pytest.mark.engines
@pytest.mark.skipif(not os.environ.get("FULL"), reason="takes an hour: FULL=1 runs it")
def test_twenty_thousand_operations(tmp_path: Path) -> None:
    """The same for longer; the chain of versions is followed through the logs."""
    operations = int(os.environ.get("HISTORY_OPERATIONS", "20000"))
    numbers = run(tmp_path, operations, pause_s=6.0, every=False)
    print(numbers)
    calls = numbers["calls"]
    assert isinstance(calls, dict) and calls["commit ok"] > operations / 20
