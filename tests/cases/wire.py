"""Plain HTTP access to a running catalog in the words of the public cases: create, load, commit, register."""

from __future__ import annotations

import itertools
import json
import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import httpx

from tests.cases.shorthand import highest_id
from tests.s3_path import S3Path

Json = Any

_NUMBERS = itertools.count(1)


def unique(stem: str) -> str:
    """A name that no other test of this process uses."""
    return f"{stem}{next(_NUMBERS)}"


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def error_of(response: httpx.Response, status: int | Collection[int], kind: str | None = None) -> Json:
    """The error of a response that must carry the Iceberg envelope with `code` equal to the HTTP status."""
    expected = {status} if isinstance(status, int) else set(status)
    assert response.status_code in expected, f"{response.status_code}: {response.text[:800]}"
    body = response.json()
    assert set(body) == {"error"}, body
    error = body["error"]
    assert error["code"] == response.status_code
    assert isinstance(error["message"], str) and error["message"]
    assert isinstance(error["type"], str) and error["type"]
    if kind is not None:
        assert error["type"] == kind, error
    return error


def ok(response: httpx.Response) -> Json:
    """The JSON of a 200."""
    assert response.status_code == 200, f"{response.status_code}: {response.text[:2000]}"
    return response.json()


def local_path(location: str) -> Path:
    """The file behind a location: on the local disk, or in the S3 that the suite runs on."""
    if location.startswith("s3:"):
        return S3Path(location)  # type: ignore[return-value]  # it has what the cases use
    return Path(unquote(urlsplit(location).path)) if location.startswith("file:") else Path(location)


# --- updates and requirements ------------------------------------------------------------------------------------


def add_schema(schema: Json, **extra: Json) -> Json:
    return {"action": "add-schema", "schema": schema, **extra}


def use_schema(schema_id: int = -1) -> Json:
    return {"action": "set-current-schema", "schema-id": schema_id}


def evolve(schema: Json) -> list[Json]:
    """The two updates with which clients change a schema."""
    return [add_schema(schema), use_schema()]


def add_snapshot(snapshot: Json) -> Json:
    return {"action": "add-snapshot", "snapshot": snapshot}


def set_ref(name: str, snapshot_id: int, kind: str = "branch", **extra: Json) -> Json:
    return {"action": "set-snapshot-ref", "ref-name": name, "type": kind, "snapshot-id": snapshot_id, **extra}


def drop_ref(name: str) -> Json:
    return {"action": "remove-snapshot-ref", "ref-name": name}


def set_properties(**updates: str) -> Json:
    return {"action": "set-properties", "updates": updates}


def add_spec(*fields: Json) -> list[Json]:
    """A new partition spec that becomes the default; no fields = unpartitioned."""
    return [
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": list(fields)}},
        {"action": "set-default-spec", "spec-id": -1},
    ]


def add_order(*fields: Json) -> list[Json]:
    """A new sort order that becomes the default; no fields = unsorted."""
    return [
        {"action": "add-sort-order", "sort-order": {"order-id": 1 if fields else 0, "fields": list(fields)}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
    ]


def partition(source: int, transform: str, name: str, **extra: Json) -> Json:
    return {"source-id": source, "transform": transform, "name": name, **extra}


def sort(source: int, transform: str = "identity") -> Json:
    return {"source-id": source, "transform": transform, "direction": "asc", "null-order": "nulls-first"}


def assert_ref(name: str, snapshot_id: int | None) -> Json:
    return {"type": "assert-ref-snapshot-id", "ref": name, "snapshot-id": snapshot_id}


def assert_field_id(last: int) -> Json:
    return {"type": "assert-last-assigned-field-id", "last-assigned-field-id": last}


def assert_schema(schema_id: int) -> Json:
    return {"type": "assert-current-schema-id", "current-schema-id": schema_id}


ASSERT_CREATE: Json = {"type": "assert-create"}


# --- the catalog ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """One table of a catalog, addressed by name."""

    catalog: Catalog
    namespace: tuple[str, ...]
    name: str

    @property
    def path(self) -> str:
        return f"{self.catalog.namespace_path(self.namespace)}/tables/{quote(self.name, safe='')}"

    def get(self, headers: Mapping[str, str] | None = None, **query: str) -> httpx.Response:
        return self.catalog.http.get(self.path, params=query, headers=headers)

    def load(self, **query: str) -> Json:
        """The whole LoadTableResult."""
        return ok(self.catalog.http.get(self.path, params=query))

    def metadata(self, **query: str) -> Json:
        return self.load(**query)["metadata"]

    def location_of_metadata(self) -> str:
        return str(self.load()["metadata-location"])

    def stored(self) -> Json:
        """The metadata file that the pointer names, read from disk."""
        return json.loads(local_path(self.location_of_metadata()).read_bytes())

    def post(
        self, requirements: Sequence[Json], updates: Sequence[Json], headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        return self.catalog.http.post(
            self.path, json={"requirements": list(requirements), "updates": list(updates)}, headers=headers
        )

    def commit(self, updates: Sequence[Json], requirements: Sequence[Json] = ()) -> Json:
        """A commit that must succeed; what it answers must be what the next load gives. Returns the metadata."""
        body = ok(self.post(requirements, updates))
        loaded = self.load()
        assert loaded["metadata-location"] == body["metadata-location"]
        assert loaded["metadata"] == body["metadata"]
        return body["metadata"]

    def refuse(
        self,
        updates: Sequence[Json],
        requirements: Sequence[Json] = (),
        status: int | Collection[int] = 400,
        kind: str | None = None,
    ) -> Json:
        """A commit that must be refused and leave the table as it was. Returns the error."""
        before = self.load()
        error = error_of(self.post(requirements, updates), status, kind)
        after = self.load()
        assert after["metadata-location"] == before["metadata-location"]
        assert after["metadata"] == before["metadata"]
        return error

    def uuid_ok(self) -> Json:
        return {"type": "assert-table-uuid", "uuid": self.metadata()["table-uuid"]}

    def snap(
        self,
        snapshot_id: int,
        parent: int | None = None,
        seq: int | None = 1,
        ts: int | None = None,
        schema_id: int | None = 0,
        **extra: Json,
    ) -> Json:
        """An `add-snapshot` payload with a manifest list below the table."""
        location = self.metadata()["location"]
        return snapshot(location, snapshot_id, parent, seq, ts, schema_id, **extra)

    def append(
        self, snapshot_id: int, parent: int | None = None, seq: int | None = 1, *, ref: str = "main", **extra: Json
    ) -> Json:
        """Add a snapshot and move the branch to it. Returns the metadata."""
        return self.commit([add_snapshot(self.snap(snapshot_id, parent, seq, **extra)), set_ref(ref, snapshot_id)])


def snapshot(
    location: str,
    snapshot_id: int,
    parent: int | None = None,
    seq: int | None = 1,
    ts: int | None = None,
    schema_id: int | None = 0,
    **extra: Json,
) -> Json:
    out: Json = {
        "snapshot-id": snapshot_id,
        "timestamp-ms": now_ms() if ts is None else ts,
        "manifest-list": f"{location}/metadata/snap-{snapshot_id}.avro",
        "summary": {"operation": "append"},
    }
    if parent is not None:
        out["parent-snapshot-id"] = parent
    if seq is not None:
        out["sequence-number"] = seq
    if schema_id is not None:
        out["schema-id"] = schema_id
    return {**out, **extra}


@dataclass(frozen=True)
class Catalog:
    """The REST routes of one warehouse."""

    http: httpx.Client
    warehouse: Path
    prefix: str = "default"

    @property
    def base(self) -> str:
        return f"/v1/{self.prefix}"

    def namespace_path(self, levels: Sequence[str]) -> str:
        return f"{self.base}/namespaces/" + "%1F".join(quote(level, safe="") for level in levels)

    def namespace(self, *levels: str, properties: Mapping[str, str] | None = None) -> tuple[str, ...]:
        """Create a namespace; without levels one with a fresh name."""
        chosen = levels or (unique("ns"),)
        body: Json = {"namespace": list(chosen)}
        if properties is not None:
            body["properties"] = dict(properties)
        ok(self.http.post(f"{self.base}/namespaces", json=body))
        return chosen

    def table(self, namespace: Sequence[str], name: str) -> Table:
        return Table(self, tuple(namespace), name)

    def post_create(self, namespace: Sequence[str], name: str, schema: Json, **body: Json) -> httpx.Response:
        return self.http.post(
            f"{self.namespace_path(namespace)}/tables",
            json={"name": name, "schema": schema, **{k.replace("_", "-"): v for k, v in body.items()}},
        )

    def create(
        self,
        namespace: Sequence[str],
        schema: Json,
        *,
        name: str | None = None,
        version: int | None = None,
        **body: Json,
    ) -> Table:
        """Create a table that must be accepted."""
        chosen = name or unique("t")
        if version is not None:
            body["properties"] = {**(body.get("properties") or {}), "format-version": str(version)}
        ok(self.post_create(namespace, chosen, schema, **body))
        return self.table(namespace, chosen)

    def post_register(self, namespace: Sequence[str], name: str, location: str, **body: Json) -> httpx.Response:
        return self.http.post(
            f"{self.namespace_path(namespace)}/register", json={"name": name, "metadata-location": location, **body}
        )

    def drop(self, table: Table, **query: str) -> httpx.Response:
        return self.http.delete(table.path, params=query)

    def transaction(self, *changes: tuple[Table, Sequence[Json], Sequence[Json]]) -> httpx.Response:
        """All changes (table, requirements, updates) in one commit."""
        return self.http.post(
            f"{self.base}/transactions/commit",
            json={
                "table-changes": [
                    {
                        "identifier": {"namespace": list(table.namespace), "name": table.name},
                        "requirements": list(requirements),
                        "updates": list(updates),
                    }
                    for table, requirements, updates in changes
                ]
            },
        )

    def write_metadata(self, metadata: Json, name: str = "00000-seed.metadata.json", data: bytes | None = None) -> str:
        """Put a metadata file where the document's location says, and return its location."""
        folder = local_path(metadata["location"]) / "metadata"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(json.dumps(metadata).encode() if data is None else data)
        return f"{metadata['location']}/metadata/{name}"

    def seed(self, namespace: Sequence[str], metadata: Json, *, name: str | None = None) -> Table:
        """Register a hand-written metadata document as a table: every id is exactly as given."""
        chosen = name or unique("t")
        ok(self.post_register(namespace, chosen, self.write_metadata(metadata)))
        return self.table(namespace, chosen)

    def document(
        self,
        schemas: Json | Sequence[Json],
        *,
        version: int = 2,
        snapshots: Sequence[Json] = (),
        refs: Mapping[str, Json] | None = None,
        main: int | None = None,
        **fields: Json,
    ) -> Json:
        """A metadata document with sensible counters; `fields` (underscores for dashes) override any of them.

        `snapshots` are given without location: a callable part of each manifest list is filled in here.
        """
        return document(self.warehouse, schemas, version=version, snapshots=snapshots, refs=refs, main=main, **fields)


def document(
    warehouse: Path,
    schemas: Json | Sequence[Json],
    *,
    version: int,
    snapshots: Sequence[Json],
    refs: Mapping[str, Json] | None,
    main: int | None,
    **fields: Json,
) -> Json:
    """See `Catalog.document`."""
    listed = [schemas] if isinstance(schemas, dict) else list(schemas)
    numbered = [{"schema-id": number, **item} for number, item in enumerate(listed)]
    location = f"file://{warehouse}/seeds/{uuid.uuid4()}"
    last = max((item.get("sequence-number", 0) for item in snapshots), default=0)
    stamp = max((item["timestamp-ms"] for item in snapshots), default=now_ms())
    out: Json = {
        "format-version": version,
        "table-uuid": str(uuid.uuid4()),
        "location": location,
        "last-updated-ms": stamp,
        "last-column-id": max(highest_id(item) for item in numbered),
        "schemas": numbered,
        "current-schema-id": numbered[-1]["schema-id"],
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": {},
        "snapshots": [
            {**item, "manifest-list": f"{location}/metadata/snap-{item['snapshot-id']}.avro"} for item in snapshots
        ],
        "snapshot-log": [],
        "metadata-log": [],
        "refs": dict(refs or {}),
    }
    if version >= 2:
        out["last-sequence-number"] = last
    if version >= 3:
        out["next-row-id"] = max((s["first-row-id"] + s["added-rows"] for s in snapshots), default=0)
    if main is not None:
        out["current-snapshot-id"] = main
        out["refs"]["main"] = {"snapshot-id": main, "type": "branch"}
        out["snapshot-log"] = [{"snapshot-id": main, "timestamp-ms": stamp}]
    out.update({key.replace("_", "-"): value for key, value in fields.items()})
    return out
