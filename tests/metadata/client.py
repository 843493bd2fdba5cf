"""A well-behaved client: draws commits that are legal on the state it sees, with the ids that a client computes."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from app.iceberg.table import TableMetadata
from tests.iceberg.documents import column, schema, snapshot
from tests.metadata.folding import (
    add_schema,
    add_snapshot,
    add_spec,
    remove_snapshots,
    set_current,
    set_properties,
    set_ref,
    written,
)

Update = dict[str, Any]

ACTIONS = (
    "append", "append", "append", "branch", "tag", "rollback", "drop-ref", "expire", "overwrite",
    "add-column", "drop-column", "rename", "old-schema", "partition", "old-spec", "sort",
    "set-properties", "remove-properties", "location", "statistics", "drop-statistics",
    "remove-schemas", "remove-specs",
)  # fmt: skip


class Client:
    """Holds the table as it last saw it, and what it changed in the commit under way."""

    def __init__(self, table: TableMetadata, draw: st.DrawFn, stamp: int) -> None:
        self.draw = draw
        self.table = table
        self.doc = written(table)
        self.stamp = stamp
        self.snapshots: dict[int, dict[str, Any]] = {item["snapshot-id"]: item for item in self.doc["snapshots"]}
        self.refs: dict[str, dict[str, Any]] = dict(self.doc["refs"])
        self.number = self.doc.get("last-sequence-number", 0)
        self.row = self.doc.get("next-row-id", 0)
        self.schemas = {item["schema-id"]: item for item in self.doc["schemas"]}
        self.current = self.doc["current-schema-id"]
        self.last_column_id = self.doc["last-column-id"]
        self.specs = {item["spec-id"]: item["fields"] for item in self.doc["partition-specs"]}
        self.default_spec = self.doc["default-spec-id"]
        self.last_partition_id = self.doc["last-partition-id"]
        self.orders = {item["order-id"]: item["fields"] for item in self.doc["sort-orders"]}
        self.default_order = self.doc["default-sort-order-id"]
        self.properties = dict(self.doc["properties"])
        self.statistics = {item["snapshot-id"] for item in self.doc["statistics"]}

    def pick(self, options: Any) -> Any:
        return self.draw(st.sampled_from(sorted(options)))

    def fresh(self) -> int:
        self.stamp += 1
        return self.stamp

    def act(self, action: str) -> list[Update]:
        updates: list[Update] = getattr(self, action.replace("-", "_"))()
        return updates

    # --- snapshots and refs

    def _new_snapshot(self, parent: int | None) -> dict[str, Any]:
        made = snapshot(self.fresh(), parent, 0, 1_700_000_000_000 + self.stamp) | {"schema-id": self.current}
        if self.table.format_version > 1:
            self.number += 1
            made["sequence-number"] = self.number
        if self.table.format_version > 2:
            made |= {"first-row-id": self.row, "added-rows": 10}
            self.row += 10
        self.snapshots[made["snapshot-id"]] = made
        return made

    def _move(self, name: str, snapshot_id: int, kind: str = "branch") -> Update:
        self.refs[name] = {"snapshot-id": snapshot_id, "type": kind}
        return set_ref(snapshot_id, name, kind)

    def append(self) -> list[Update]:
        branches = {name for name, ref in self.refs.items() if ref["type"] == "branch"} | {"main"}
        name = self.pick(branches)
        made = self._new_snapshot(self.refs[name]["snapshot-id"] if name in self.refs else None)
        return [add_snapshot(made), self._move(name, made["snapshot-id"])]

    def overwrite(self) -> list[Update]:
        made = self._new_snapshot(None)
        return [add_snapshot(made), self._move("main", made["snapshot-id"])]

    def branch(self) -> list[Update]:
        return [self._move(f"b{self.fresh()}", self.pick(self.snapshots))] if self.snapshots else []

    def tag(self) -> list[Update]:
        return [self._move(f"t{self.fresh()}", self.pick(self.snapshots), "tag")] if self.snapshots else []

    def rollback(self) -> list[Update]:
        return [self._move("main", self.pick(self.snapshots))] if self.snapshots else []

    def drop_ref(self) -> list[Update]:
        if not self.refs:
            return []
        name = self.pick(self.refs)
        del self.refs[name]
        return [{"action": "remove-snapshot-ref", "ref-name": name}]

    def expire(self) -> list[Update]:
        held = {ref["snapshot-id"] for ref in self.refs.values()} | {
            item.get("parent-snapshot-id") for item in self.snapshots.values()
        }
        free = sorted(self.snapshots.keys() - held)
        for snapshot_id in free:
            del self.snapshots[snapshot_id]
            self.statistics.discard(snapshot_id)
        return [remove_snapshots(*free)] if free else []

    # --- schema

    def _columns(self, schema_id: int | None = None) -> list[dict[str, Any]]:
        fields: list[dict[str, Any]] = self.schemas[self.current if schema_id is None else schema_id]["fields"]
        return fields

    def _held(self) -> set[int]:
        parts = [*self.specs[self.default_spec], *self.orders[self.default_order]]
        return {part["source-id"] for part in parts}

    def _new_schema(self, fields: list[dict[str, Any]]) -> list[Update]:
        made = schema(max(self.schemas) + 1, *fields)
        self.schemas[made["schema-id"]] = made
        self.current = made["schema-id"]
        self.last_column_id = max([self.last_column_id, *(field["id"] for field in fields)])
        return [add_schema(made), set_current()]

    def add_column(self) -> list[Update]:
        kind = self.pick(["int", "string", "date", "decimal(9, 2)"])
        return self._new_schema([*self._columns(), column(self.last_column_id + 1, f"c{self.fresh()}", kind)])

    def drop_column(self) -> list[Update]:
        free = [field["id"] for field in self._columns() if field["id"] not in self._held()]
        if not free:
            return []
        gone = self.pick(free)
        kept = [dict(field) for field in self._columns() if field["id"] != gone]
        if kept:
            kept[0]["doc"] = f"revision {self.fresh()}"
        else:
            kept = [column(self.last_column_id + 1, f"c{self.fresh()}")]
        return self._new_schema(kept)

    def rename(self) -> list[Update]:
        fields = [dict(field) for field in self._columns()]
        self.draw(st.sampled_from(fields))["name"] = f"c{self.fresh()}"
        return self._new_schema(fields)

    def old_schema(self) -> list[Update]:
        held = self._held()
        fit = [item for item in self.schemas if held <= {field["id"] for field in self._columns(item)}]
        self.current = self.pick(fit)
        return [set_current(self.current)]

    def remove_schemas(self) -> list[Update]:
        used = {item.get("schema-id") for item in self.snapshots.values()} | {self.current, max(self.schemas)}
        free = sorted(self.schemas.keys() - used)
        for schema_id in free:
            del self.schemas[schema_id]
        return [{"action": "remove-schemas", "schema-ids": free}] if free else []

    # --- partition specs and sort orders

    def partition(self) -> list[Update]:
        transform = self.pick(["bucket[4]", "bucket[8]", "identity", "void"])
        field = self.draw(st.sampled_from(self._columns()))
        name = field["name"] if transform == "identity" else f"p{self.fresh()}"
        for spec_id, parts in self.specs.items():
            if [(part["source-id"], part["transform"], part["name"]) for part in parts] == [
                (field["id"], transform, name)
            ]:
                self.default_spec = spec_id
                return [{"action": "set-default-spec", "spec-id": spec_id}]
        known = [
            part["field-id"]
            for parts in self.specs.values()
            for part in parts
            if (part["source-id"], part["transform"]) == (field["id"], transform)
        ]
        field_id = max(known, default=self.last_partition_id + 1)
        if self.table.format_version == 1:
            field_id = 1000
        self.last_partition_id = max(self.last_partition_id, field_id)
        spec_id = max(self.specs) + 1
        part = {"source-id": field["id"], "transform": transform, "name": name, "field-id": field_id}
        self.specs[spec_id] = [part]
        self.default_spec = spec_id
        return [
            add_spec((field["id"], transform, name, field_id), spec_id=spec_id),
            {"action": "set-default-spec", "spec-id": -1},
        ]

    def _fits(self, parts: list[dict[str, Any]]) -> bool:
        names = {field["name"]: field["id"] for field in self._columns()}
        ids = set(names.values())
        return all(
            part["source-id"] in ids and names.get(part["name"], part["source-id"]) == part["source-id"]
            for part in parts
        )

    def old_spec(self) -> list[Update]:
        self.default_spec = self.pick([item for item, parts in self.specs.items() if self._fits(parts)])
        return [{"action": "set-default-spec", "spec-id": self.default_spec}]

    def remove_specs(self) -> list[Update]:
        free = sorted(self.specs.keys() - {self.default_spec, max(self.specs)})
        for spec_id in free:
            del self.specs[spec_id]
        return [{"action": "remove-partition-specs", "spec-ids": free}] if free else []

    def sort(self) -> list[Update]:
        field = self.draw(st.sampled_from(self._columns()))
        parts = [{"source-id": field["id"], "transform": "identity", "direction": "asc", "null-order": "nulls-first"}]
        known = next((order_id for order_id, fields in self.orders.items() if fields == parts), None)
        if known is not None:
            self.default_order = known
            return [{"action": "set-default-sort-order", "sort-order-id": known}]
        self.default_order = max(self.orders) + 1
        self.orders[self.default_order] = parts
        order = {"order-id": self.default_order, "fields": parts}
        return [
            {"action": "add-sort-order", "sort-order": order},
            {"action": "set-default-sort-order", "sort-order-id": -1},
        ]

    # --- the rest

    def set_properties(self) -> list[Update]:
        key, value = self.pick("abc"), self.pick("123")
        self.properties[key] = value
        return [set_properties(**{key: value})]

    def remove_properties(self) -> list[Update]:
        if not self.properties:
            return []
        key = self.pick(self.properties)
        del self.properties[key]
        return [{"action": "remove-properties", "removals": [key]}]

    def location(self) -> list[Update]:
        return [{"action": "set-location", "location": f"s3://bucket/{self.pick('xyz')}"}]

    def statistics_file(self, snapshot_id: int) -> dict[str, Any]:
        return {
            "snapshot-id": snapshot_id,
            "statistics-path": f"s3://bucket/{self.fresh()}.puffin",
            "file-size-in-bytes": 2**40,
            "file-footer-size-in-bytes": 1,
            "blob-metadata": [],
        }

    def statistics_of(self) -> list[Update]:
        if not self.snapshots:
            return []
        snapshot_id = self.pick(self.snapshots)
        self.statistics.add(snapshot_id)
        return [
            {"action": "set-statistics", "snapshot-id": snapshot_id, "statistics": self.statistics_file(snapshot_id)}
        ]

    def drop_statistics(self) -> list[Update]:
        if not self.statistics:
            return []
        snapshot_id = self.pick(self.statistics)
        self.statistics.remove(snapshot_id)
        return [{"action": "remove-statistics", "snapshot-id": snapshot_id}]


@st.composite
def legal_commit(draw: st.DrawFn, table: TableMetadata, stamp: int) -> list[Update]:
    """The updates of one commit; `stamp` above every id used so far keeps names and ids unique."""
    client = Client(table, draw, stamp)
    updates: list[Update] = []
    for action in draw(st.lists(st.sampled_from(ACTIONS), min_size=1, max_size=5)):
        updates += client.statistics_of() if action == "statistics" else client.act(action)
    # A copy: later acts of the client must not change what was sent.
    decoded: list[Update] = msgspec.json.decode(msgspec.json.encode(updates))
    return decoded
