"""Clients that use a catalog of several replicas while things break, and write down what they did and heard."""

from __future__ import annotations

import itertools
import random
import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.history.recording import Call, Outcome

NAMESPACE = "history"
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
_GIVE_UP_S = 90.0
_HONEST = frozenset({"CommitStateUnknownException", "ServiceUnavailableException"})
_DEFINITE = frozenset({200, 204, 400, 404, 409, 422})

Json = Any


@dataclass
class Shared:
    """What all clients of a run know: where the replicas are, the tables that everybody writes to, the numbers."""

    urls: Sequence[str]
    operations: int
    rotate_after: int
    calls: list[Call] = field(default_factory=list)
    tables: dict[str, str] = field(default_factory=dict)
    trouble: list[str] = field(default_factory=list)
    snapshot_ids: Any = field(default_factory=lambda: itertools.count(1))
    done: Any = field(default_factory=lambda: itertools.count(1))
    lock: threading.Lock = field(default_factory=threading.Lock)


class Client(threading.Thread):
    """One thread with one seed. Every change carries an idempotency key and is repeated until it is answered."""

    def __init__(self, number: int, shared: Shared, seed: int) -> None:
        super().__init__(name=f"client-{number}")
        self._number = number
        self._shared = shared
        self._random = random.Random(seed * 1000 + number)
        self._http = httpx.Client(timeout=15, trust_env=False)
        self._mine: dict[str, str] = {}
        self._names = itertools.count(1)

    def run(self) -> None:
        try:
            while next(self._shared.done) <= self._shared.operations:
                self._step()
        except Exception as error:
            self._shared.trouble.append(f"client {self._number}: {error!r}")
        finally:
            self.close()

    def close(self) -> None:
        self._http.close()

    def _step(self) -> None:
        kinds = ["commit"] * 45 + ["load"] * 20 + ["transaction"] * 15 + ["create"] * 8 + ["rename"] * 6 + ["drop"] * 6
        getattr(self, f"_{self._random.choice(kinds)}")()

    # --- what clients do -------------------------------------------------------------------------------------------

    def _commit(self) -> None:
        name = self._random.choice(sorted(self._shared.tables))
        loaded = self._load_table(name)
        if loaded is None:
            return
        change, snapshot = self._append(loaded)
        found = loaded["metadata"]
        self._change("commit", "POST", self._path(name), change, effects={found["table-uuid"]: snapshot})
        if len(found.get("snapshots", ())) >= self._shared.rotate_after:
            self.make_shared(name)

    def _transaction(self) -> None:
        names = self._random.sample(sorted(self._shared.tables), 2)
        changes, effects = [], {}
        for name in names:
            loaded = self._load_table(name)
            if loaded is None:
                return
            change, snapshot = self._append(loaded)
            changes.append({"identifier": {"namespace": [NAMESPACE], "name": name}, **change})
            effects[loaded["metadata"]["table-uuid"]] = snapshot
        if len(effects) == 2:
            self._change("transaction", "POST", "/v1/transactions/commit", {"table-changes": changes}, effects=effects)

    def _load(self) -> None:
        self._load_table(self._random.choice(sorted(self._shared.tables)))

    def _create(self) -> None:
        name = f"own_{self._number}_{next(self._names)}"
        made = self._create_table(name)
        if made is not None:
            self._mine[name] = made

    def _drop(self) -> None:
        if self._mine:
            name = self._random.choice(sorted(self._mine))
            del self._mine[name]
            self._change("drop", "DELETE", self._path(name), None, name=name)

    def _rename(self) -> None:
        if self._mine:
            name = self._random.choice(sorted(self._mine))
            to_name = f"own_{self._number}_{next(self._names)}"
            self._mine[to_name] = self._mine.pop(name)
            places = [{"namespace": [NAMESPACE], "name": each} for each in (name, to_name)]
            body = {"source": places[0], "destination": places[1]}
            self._change("rename", "POST", "/v1/tables/rename", body, name=name, to_name=to_name)

    def make_shared(self, replaces: str | None = None) -> None:
        """A new table for everybody, in place of one that has become large."""
        with self._shared.lock:
            if replaces is not None and self._shared.tables.pop(replaces, None) is None:
                return
            number = next(self._shared.snapshot_ids)
        made = self._create_table(f"shared_{number}")
        if made is not None:
            self._shared.tables[f"shared_{number}"] = made

    # --- one call --------------------------------------------------------------------------------------------------

    def _create_table(self, name: str) -> str | None:
        body = {"name": name, "schema": SCHEMA, "properties": {"write.metadata.previous-versions-max": "100"}}
        answer = self._change("create", "POST", f"/v1/namespaces/{NAMESPACE}/tables", body, name=name)
        return None if answer is None else str(answer["metadata"]["table-uuid"])

    def _append(self, loaded: Json) -> tuple[Json, int]:
        metadata = loaded["metadata"]
        parent = metadata.get("refs", {}).get("main", {}).get("snapshot-id")
        snapshot_id = next(self._shared.snapshot_ids)
        snapshot = {
            "snapshot-id": snapshot_id,
            "sequence-number": metadata["last-sequence-number"] + 1,
            "timestamp-ms": time.time_ns() // 1_000_000,
            "manifest-list": f"{metadata['location']}/metadata/snap-{snapshot_id}.avro",
            "summary": {"operation": "append"},
            "schema-id": 0,
            **({} if parent is None else {"parent-snapshot-id": parent}),
        }
        updates = [
            {"action": "add-snapshot", "snapshot": snapshot},
            {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": snapshot_id},
        ]
        requirements = [
            {"type": "assert-table-uuid", "uuid": metadata["table-uuid"]},
            {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": parent},
        ]
        return {"requirements": requirements, "updates": updates}, snapshot_id

    def _load_table(self, name: str) -> Json | None:
        began = time.monotonic_ns()
        deadline = time.monotonic() + _GIVE_UP_S
        while time.monotonic() < deadline:
            attempt = time.monotonic_ns()
            response = self._send("GET", self._path(name), None, {})
            if response is not None and response.status_code == 200:
                loaded = response.json()
                found = loaded["metadata"]
                seen = tuple(each["snapshot-id"] for each in found.get("snapshots", ()))
                self._note(Call(
                    self._number, "load", attempt, time.monotonic_ns(), "ok", uuid=found["table-uuid"], seen=seen,
                ))  # fmt: skip
                return loaded
            if response is not None and response.status_code == 404:
                self._shared.trouble.append(f"{name} is not found, {(time.monotonic_ns() - began) // 10**6} ms after")
                return None
            time.sleep(0.1)
        self._shared.trouble.append(f"client {self._number} could not load {name} for {_GIVE_UP_S} s")
        return None

    def _change(
        self, kind: str, method: str, path: str, body: Json, *, effects: dict[str, int] | None = None,
        name: str | None = None, to_name: str | None = None,
    ) -> Json | None:  # fmt: skip
        headers = {"Idempotency-Key": str(uuid.UUID(int=self._random.getrandbits(128), version=4))}
        began = time.monotonic_ns()
        response = self._until_definite(method, path, body, headers)
        outcome: Outcome = "unknown" if response is None else "ok" if response.status_code < 300 else "refused"
        ended = time.monotonic_ns()
        answers = [_told(response)]
        if outcome == "ok" and self._random.random() < 0.2:
            again = self._until_definite(method, path, body, headers)
            if again is not None and again.status_code >= 300:
                told = f"{again.status_code}: {again.text}"
                self._shared.trouble.append(f"a replay of a successful {kind} was answered {told}")
            # A replay may show a newer version of the table, but never another file than one of its history.
            answers.append(_told(again) if kind == "create" else None)
        answer = response.json() if response is not None and response.content and outcome == "ok" else None
        made = answer["metadata"]["table-uuid"] if kind == "create" and answer else None
        self._note(Call(
            self._number, kind, began, ended, outcome, dict(effects or {}), uuid=made, name=name, to_name=to_name,
            answers=tuple(answers),
        ))  # fmt: skip
        if outcome == "refused" and kind not in ("commit", "transaction"):
            self._shared.trouble.append(f"{kind} {name} was refused: {response.text if response is not None else ''}")
        return answer

    def _until_definite(self, method: str, path: str, body: Json, headers: dict[str, str]) -> httpx.Response | None:
        deadline = time.monotonic() + _GIVE_UP_S
        while time.monotonic() < deadline:
            response = self._send(method, path, body, headers)
            if response is not None and response.status_code in _DEFINITE:
                return response
            time.sleep(self._random.uniform(0.02, 0.2))
        return None

    def _send(self, method: str, path: str, body: Json, headers: dict[str, str]) -> httpx.Response | None:
        try:
            url = self._random.choice(self._shared.urls) + path
            response = self._http.request(method, url, json=body, headers=headers)
        except httpx.TransportError:
            return None
        if response.status_code >= 500 and response.json()["error"]["type"] not in _HONEST:
            self._shared.trouble.append(f"{method} {path}: {response.status_code} {response.text}")
        return response

    def _path(self, name: str) -> str:
        return f"/v1/namespaces/{NAMESPACE}/tables/{name}"

    def _note(self, call: Call) -> None:
        with self._shared.lock:
            self._shared.calls.append(call)


def _told(response: httpx.Response | None) -> str | None:
    if response is None or not response.content:
        return None
    location = response.json().get("metadata-location")
    return None if location is None else str(location)
