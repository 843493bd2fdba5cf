"""The snapshot log and the metadata log."""

from __future__ import annotations

import msgspec
import pytest

from app.errors import SpecError
from app.iceberg.json.chunked_text import joined
from app.iceberg.logs import (
    MetadataLog,
    SnapshotLog,
    parse_metadata_log,
    parse_snapshot_log,
)


def test_stored_entries_keep_their_text() -> None:
    """Unknown members of log entries survive, and an appended entry follows them."""
    log = parse_snapshot_log(msgspec.Raw(b'[{"snapshot-id": 1,"timestamp-ms":5,"x":0}]'), "$").add(6, 2)
    assert joined(log.parts()) == (b'[{"snapshot-id": 1,"timestamp-ms":5,"x":0},{"timestamp-ms":6,"snapshot-id":2}]')


def test_an_empty_log_is_an_empty_list() -> None:
    """Blanks between the brackets are nothing."""
    assert joined(parse_metadata_log(msgspec.Raw(b"[ ]"), "$").add(1, "a").parts()) == (
        b'[{"timestamp-ms":1,"metadata-file":"a"}]'
    )
    assert joined(SnapshotLog().parts()) == b"[]"


def test_trimming_drops_the_oldest() -> None:
    """The last entries stay; what fell out is told, oldest first."""
    log = MetadataLog()
    for at in range(5):
        log = log.add(at, f"f{at}")
    kept, dropped = log.trim(3)
    assert [entry.metadata_file for entry in kept] == ["f2", "f3", "f4"]
    assert [entry.metadata_file for entry in dropped] == ["f0", "f1"]
    assert log.trim(5) == (log, ())


def test_a_bad_entry_is_named() -> None:
    """The path leads to the entry."""
    with pytest.raises(SpecError) as caught:
        parse_metadata_log(
            msgspec.Raw(b'[{"timestamp-ms":1,"metadata-file":"a"},{"timestamp-ms":1}]'), "$.metadata-log"
        )
    assert caught.value.path.startswith("$.metadata-log[1]")
