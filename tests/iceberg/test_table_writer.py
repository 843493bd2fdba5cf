"""Writing table metadata."""

from __future__ import annotations

import gzip
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.iceberg.json import append_log, chunked_text
from app.iceberg.json.chunked_text import Text
from app.iceberg.json.codec import encode
from app.iceberg.snapshot import snapshot_from_json
from app.iceberg.table import (
    TableMetadata,
    compose_table_metadata,
    parse_table_metadata,
    render_refs_only,
    render_table_metadata,
    stored_text,
)
from tests.iceberg.documents import (
    NOW,
    column,
    document,
    parsed,
    schema,
    snapshot,
    with_history,
)

EMPTY: dict[str, Any] = {
    "snapshots": [],
    "snapshot-log": [],
    "metadata-log": [],
    "refs": {},
    "statistics": [],
    "partition-statistics": [],
}


def written(value: dict[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = msgspec.json.decode(render_table_metadata(parsed(value)))
    return out


@pytest.mark.parametrize(("version", "none"), [(1, -1), (2, -1), (3, None)])
def test_an_empty_table_writes_its_empty_members(version: int, none: int | None) -> None:
    """No snapshot is -1 before version 3 and null since; lists and maps are empty, not absent."""
    out = written(document(version))
    assert {key: out[key] for key in EMPTY} == EMPTY
    assert "current-snapshot-id" in out
    assert out["current-snapshot-id"] == none


def test_members_by_version() -> None:
    """Sequence numbers since 2, row ids since 3, legacy members in 1 only."""
    one, two, three = (written(document(version)) for version in (1, 2, 3))
    assert {"schema", "partition-spec"} <= one.keys()
    assert one["schema"] == one["schemas"][0]
    assert one["partition-spec"] == []
    assert not {"last-sequence-number", "next-row-id"} & one.keys()
    assert not {"schema", "partition-spec", "next-row-id"} & two.keys()
    assert three["next-row-id"] == three["last-sequence-number"] == 0


def test_nothing_but_these_differs_from_what_was_read() -> None:
    """A full document is written as it was read."""
    value = with_history(snapshot(1, number=1), snapshot(2, 1, number=2)) | {
        "metadata-log": [{"timestamp-ms": 1, "metadata-file": "f"}],
        "statistics": [],
        "partition-statistics": [{"snapshot-id": 1, "statistics-path": "p", "file-size-in-bytes": 1}],
        "encryption-keys": [{"key-id": "k", "encrypted-key-metadata": "AA==", "x": 1}],
        "properties": {"a": "ü\u2028"},
    }
    assert written(value) == value


def test_unknown_members_survive_at_every_level() -> None:
    """Top level byte for byte; in snapshots, schemas, fields, specs, orders, refs and logs by value."""
    value = with_history(snapshot(1) | {"x": 1})
    value["schemas"] = [schema(0, column(1, "id", x=1), y=[1.5])]
    value["partition-specs"] = [
        {"spec-id": 0, "x": 2, "fields": [{"source-id": 1, "field-id": 1000, "name": "p", "transform": "void", "x": 1}]}
    ]
    value["sort-orders"] = [{"order-id": 0, "fields": [], "x": 3}]
    value["refs"]["main"]["x"] = {"deep": None}
    value["snapshot-log"][0]["x"] = 1
    out = written(value)
    for key in ("snapshots", "schemas", "partition-specs", "sort-orders", "refs", "snapshot-log"):
        assert out[key] == value[key]
    text = encode(document())[:-1] + b',"x-new": {"a" :1e2,  "b":[null ]} }'
    assert b'"x-new":{"a" :1e2,  "b":[null ]}' in render_table_metadata(parse_table_metadata(text))


def test_encryption_keys_are_written_only_if_there_are_any() -> None:
    """At any version."""
    assert "encryption-keys" not in written(document(3))


def test_what_was_written_reads_as_the_same_table() -> None:
    """Writing is a fixed point."""
    for version in (1, 2, 3):
        once = render_table_metadata(parsed(with_history(snapshot(1), version=version)))
        assert render_table_metadata(parse_table_metadata(once)) == once


def test_refs_only_keeps_what_refs_point_to() -> None:
    """Snapshots without a ref go, and nothing else does."""
    value = with_history(snapshot(1), snapshot(2, 1), snapshot(3, 2))
    value["refs"]["t"] = {"snapshot-id": 1, "type": "tag"}
    full, refs = written(value), msgspec.json.decode(render_refs_only(parsed(value)))
    assert [item["snapshot-id"] for item in refs["snapshots"]] == [1, 3]
    assert refs | {"snapshots": full["snapshots"]} == full


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 30)),
        st.tuples(st.just("expire"), st.integers(1, 40)),
        st.tuples(st.just("drop"), st.integers(0, 60)),
        st.tuples(st.just("set"), st.integers(0, 99)),
        st.tuples(st.just("reload"), st.just(0)),
    ),
    max_size=12,
)


def stepped(table: TableMetadata, step: str, argument: int, number: int) -> TableMetadata:
    replace = msgspec.structs.replace
    if step == "append":
        for at in range(number, number + argument):
            entry = snapshot_from_json(snapshot(at), "$")
            log = table.snapshot_log.add(NOW + at, at)
            table = replace(table, snapshots=table.snapshots.append(entry), snapshot_log=log)
        return replace(table, metadata_log=table.metadata_log.add(NOW + number, f"file-{number}").trim(5)[0])
    if step == "expire":
        return replace(
            table, snapshots=table.snapshots.after(argument), snapshot_log=table.snapshot_log.after(argument)
        )
    if step == "drop":
        return replace(table, snapshots=table.snapshots.keep(lambda item: item.snapshot_id % 61 != argument))
    if step == "set":
        return replace(table, properties={"p": str(argument)})
    return parse_table_metadata(compose_table_metadata(table, 1 << 40))  # type: ignore[arg-type]


@given(STEPS)
def test_whatever_happens_the_compressed_text_is_the_plain_one(steps: list[tuple[str, int]]) -> None:
    """Appends, expiry, edits and reloads: each version unpacks to its text, and old versions stay what they were."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(append_log, "LOOSE_LIMIT", 5)
        patch.setattr(append_log, "CHUNK_BYTES", 2_000)
        patch.setattr(append_log, "_SMALL_BYTES", 1_000)
        history = [snapshot(n) for n in range(1, 50)]
        free = {"refs": {}, "current_snapshot_id": -1, "last_updated_ms": NOW + 10_000}
        table, number = parsed(with_history(*history, **free)), 50
        versions: list[tuple[Text, bytes]] = []
        for step, argument in steps:
            table, number = stepped(table, step, argument, number), number + 100
            composed = compose_table_metadata(table)
            plain = render_table_metadata(table)
            assert isinstance(composed, Text)
            versions.append((composed, plain))
            assert gzip.decompress(b"".join(composed.deflated().member())) == composed.joined() == plain
            ids = [item.snapshot_id for item in table.snapshots]
            assert [item["snapshot-id"] for item in msgspec.json.decode(plain)["snapshots"]] == ids
        for composed, plain in versions:
            assert composed.joined() == plain


def test_a_small_text_is_in_one_piece() -> None:
    """Chunks are for documents that are large."""
    table = parsed(with_history(snapshot(1)))
    whole = render_table_metadata(table)
    assert compose_table_metadata(table, len(whole) + 1) == whole
    assert isinstance(compose_table_metadata(table, len(whole)), Text)


def many(count: int = 400) -> dict[str, Any]:
    wide = schema(1, *(column(n, f"column_{n}") for n in range(1, 400)))
    value = with_history(*(snapshot(n) for n in range(1, count)))
    return value | {"schemas": [*value["schemas"], wide], "x-new": {"a": 1}}


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("turned", [False, True])
def test_a_stored_text_is_the_file_byte_for_byte(indent: int | None, turned: bool) -> None:
    """However the file is laid out and its members are ordered."""
    value = many()
    listed = list(value.items())
    data = json.dumps(dict(reversed(listed) if turned else listed), indent=indent).encode()
    cut = stored_text(parse_table_metadata(data), data)
    assert cut.joined() == data
    assert gzip.decompress(b"".join(cut.deflated().member())) == data


def test_the_next_version_shares_the_long_parts_of_the_file() -> None:
    """Schemas that are wide, snapshots and their log: an append to a table just read compresses the rest."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(append_log, "CHUNK_BYTES", 20_000)
        data = encode(many())
        table = parse_table_metadata(data)
        stored = stored_text(table, data)
        stored.deflated()
        longer = msgspec.structs.replace(
            table, snapshots=table.snapshots.append(snapshot_from_json(snapshot(999), "$"))
        )
        text_of_next = compose_table_metadata(longer)
        assert isinstance(text_of_next, Text)
        assert len([chunk for chunk in text_of_next.chunks if chunk in stored.chunks]) >= 5
        assert text_of_next.pending < 3_000 < len(text_of_next)


def test_entries_that_look_alike_are_no_trap() -> None:
    """A needle found at another place counts only if the whole chunk is there."""
    table = with_history(*(snapshot(n) for n in range(1, 50)))
    decoy = json.dumps(table["snapshots"][:5], separators=(",", ":"))
    data = encode({"x-first": json.loads(decoy)} | table)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunked_text, "CHUNK_BYTES", 1_000)
        assert stored_text(parse_table_metadata(data), data).joined() == data
