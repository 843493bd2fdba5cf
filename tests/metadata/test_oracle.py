"""Agreement with PyIceberg's own fold where that is right, and soundness along long legal histories."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.iceberg.json.codec import decode, encode
from app.iceberg.table import (
    TableMetadata,
    check_references,
    parse_table_metadata,
    render_table_metadata,
)
from tests.iceberg.documents import document, parsed
from tests.metadata.client import legal_commit
from tests.metadata.folding import fold, written

pyiceberg_metadata = pytest.importorskip("pyiceberg.table.metadata")
pyiceberg_update = pytest.importorskip("pyiceberg.table.update")
pydantic = pytest.importorskip("pydantic")

UPDATES = pydantic.TypeAdapter(list[pyiceberg_update.TableUpdate])


def theirs(table: TableMetadata, updates: list[dict[str, Any]]) -> dict[str, Any]:
    """What PyIceberg makes of the same commit, read back through our own reader."""
    base = pyiceberg_metadata.TableMetadataUtil.parse_raw(render_table_metadata(table).decode())
    after = pyiceberg_update.update_table_metadata(base, tuple(UPDATES.validate_json(encode(updates))))
    # Their snapshot log mixes wall clock and snapshot times and need not be in order.
    return written(parsed(decode(after.model_dump_json()) | {"snapshot-log": [], "metadata-log": []}))


def comparable(document: dict[str, Any]) -> dict[str, Any]:
    """Without what differs on purpose.

    Times and log (theirs come from the snapshot and keep gaps), the metadata log (not asked of them), the last sequence
    number (theirs is not a maximum), and parents of expired snapshots (theirs are set to none).
    """
    skipped = {"last-updated-ms", "snapshot-log", "metadata-log", "last-sequence-number"}
    out = {key: value for key, value in document.items() if key not in skipped}
    for item in (*out["schemas"], out.get("schema", {})):
        item.pop("identifier-field-ids", None)
    listed = {item["snapshot-id"] for item in out["snapshots"]}
    out["snapshots"] = [
        {key: value for key, value in item.items() if key != "parent-snapshot-id" or value in listed}
        | {"sequence-number": item.get("sequence-number", 0)}
        for item in out["snapshots"]
    ]
    out["partition-specs"] = [
        {"spec-id": spec["spec-id"], "fields": [dict(sorted(part.items())) for part in spec["fields"]]}
        for spec in out["partition-specs"]
    ]
    return out


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data(), version=st.sampled_from([1, 2]))
def test_legal_commits_give_the_same_metadata(data: st.DataObject, version: int) -> None:
    """Commit by commit, over a history of several, both folds agree."""
    table = parsed(document(version))
    for at in range(data.draw(st.integers(1, 5))):
        updates = data.draw(legal_commit(table, 1000 * (at + 1)))
        mine = fold(table, *updates).metadata
        assert comparable(written(mine)) == comparable(theirs(table, updates))
        table = mine


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data(), version=st.sampled_from([1, 2, 3]))
def test_legal_commits_are_accepted_and_leave_a_sound_table(data: st.DataObject, version: int) -> None:
    """None is refused; every result is readable as written and its log ends at the current snapshot."""
    table = parsed(document(version))
    for at in range(data.draw(st.integers(1, 8))):
        applied = fold(table, *data.draw(legal_commit(table, 1000 * (at + 1))))
        table = applied.metadata
        check_references(table)
        text = render_table_metadata(table)
        assert render_table_metadata(parse_table_metadata(text)) == text
        last = table.snapshot_log.last
        if table.current_snapshot_id is not None:
            assert last is not None
            assert last.snapshot_id == table.current_snapshot_id
