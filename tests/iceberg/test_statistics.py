"""Statistics files."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from app.errors import SpecError
from app.iceberg.json.codec import encode
from app.iceberg.statistics import (
    parse_partition_statistics,
    parse_statistics,
    partition_statistics_from_json,
    statistics_from_json,
)

FILE: dict[str, Any] = {
    "snapshot-id": 3,
    "statistics-path": "s3://b/s.puffin",
    "file-size-in-bytes": 413,
    "file-footer-size-in-bytes": 42,
    "blob-metadata": [{"type": "t", "snapshot-id": 3, "sequence-number": 1, "fields": [1]}],
    "key-metadata": "bm9uZQ==",
}


def test_unknown_members_survive() -> None:
    """What Java drops on a round trip (key-metadata) is kept here."""
    sent = statistics_from_json(FILE | {"x": None}, "$")
    assert msgspec.json.decode(sent.raw) == FILE
    assert (sent.snapshot_id, sent.path) == (3, "s3://b/s.puffin")
    stored = parse_statistics(msgspec.Raw(encode([FILE])), "$")
    assert [file.raw for file in stored] == [encode(FILE)]


@pytest.mark.parametrize("missing", ["snapshot-id", "statistics-path", "file-size-in-bytes", "blob-metadata"])
def test_an_incomplete_file_is_refused(missing: str) -> None:
    """Every member that readers need must be there."""
    with pytest.raises(SpecError, match=missing):
        statistics_from_json({key: item for key, item in FILE.items() if key != missing}, "$")


def test_partition_statistics_need_three_members() -> None:
    """The smaller form has no blobs."""
    value = {"snapshot-id": 3, "statistics-path": "p", "file-size-in-bytes": 1}
    assert partition_statistics_from_json(value, "$").path == "p"
    with pytest.raises(SpecError) as caught:
        parse_partition_statistics(msgspec.Raw(encode([value, {"snapshot-id": 4}])), "$.partition-statistics")
    assert caught.value.path.startswith("$.partition-statistics[1]")
