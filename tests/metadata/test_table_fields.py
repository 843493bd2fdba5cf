"""Uuid, format version, location and encryption keys."""

from __future__ import annotations

from typing import Any

import pytest

from app.errors import ValidationFailed
from tests.iceberg.documents import UUID, document, parsed, snapshot, with_history
from tests.metadata.folding import (
    CREATE,
    FRESH_UUID,
    add_snapshot,
    fold,
    result,
    set_properties,
    set_ref,
    written,
)

BASE = parsed(document())
OTHER = "99999999-2222-4333-8444-555555555555"


def upgrade(version: int) -> dict[str, Any]:
    return {"action": "upgrade-format-version", "format-version": version}


def test_a_table_keeps_its_uuid() -> None:
    """The same in any letter case is no change, another one is refused (O-22)."""
    assert not fold(BASE, {"action": "assign-uuid", "uuid": UUID.upper()}).changed
    with pytest.raises(ValidationFailed, match="Cannot reassign uuid"):
        fold(BASE, {"action": "assign-uuid", "uuid": OTHER})


def test_a_table_without_uuid_gets_one() -> None:
    """Assigned, or a fresh one when version 2 needs it; an unrelated commit invents none."""
    base = parsed(document(1, table_uuid=None))
    assert result(base, {"action": "assign-uuid", "uuid": OTHER}).table_uuid == OTHER
    assert result(base, upgrade(2)).table_uuid == FRESH_UUID
    assert result(base, set_properties(a="b")).table_uuid is None


def test_versions_only_rise() -> None:
    """Equal is no change, lower and unknown are refused."""
    assert result(BASE, upgrade(3)).format_version == 3
    assert not fold(BASE, upgrade(2)).changed
    with pytest.raises(ValidationFailed, match="Cannot downgrade v2 table to v1"):
        fold(BASE, upgrade(1))
    for version in (4, 99):
        with pytest.raises(ValidationFailed, match=f"unsupported format version: v{version}"):
            fold(BASE, upgrade(version))


def test_an_upgrade_from_1_keeps_snapshots_as_they_are() -> None:
    """They count as sequence number 0, legacy members go, and the next commit starts at 1 (O-29)."""
    base = parsed(with_history(snapshot(1), snapshot(2, 1), version=1))
    after = result(base, upgrade(2), add_snapshot(snapshot(3, 2, 1)), set_ref(3))
    assert [item.sequence_number for item in after.snapshots] == [0, 0, 1]
    assert after.last_sequence_number == 1
    assert not {"schema", "partition-spec"} & written(after).keys()


def test_an_upgrade_to_3_starts_row_ids_at_0() -> None:
    """Old snapshots have none (O-34)."""
    out = written(result(parsed(with_history(snapshot(1))), upgrade(3)))
    assert out["next-row-id"] == 0
    assert "first-row-id" not in out["snapshots"][0]


def test_locations_lose_their_trailing_slash() -> None:
    """The same place is no change, an empty one is refused."""
    move = {"action": "set-location", "location": "s3://bucket/other/"}
    assert result(BASE, move).location == "s3://bucket/other"
    assert not fold(BASE, move | {"location": "s3://bucket/t/"}).changed
    with pytest.raises(ValidationFailed):
        fold(BASE, move | {"location": ""})


def test_an_encryption_key_is_listed_once() -> None:
    """A known key-id keeps its key; removing an unknown one is no change."""
    add = {"action": "add-encryption-key", "encryption-key": {"key-id": "k", "encrypted-key-metadata": "AA=="}}
    base = result(BASE, add)
    again = add | {"encryption-key": {"key-id": "k", "encrypted-key-metadata": "BB=="}}
    assert not fold(base, again, {"action": "remove-encryption-key", "key-id": "x"}).changed
    assert result(base, {"action": "remove-encryption-key", "key-id": "k"}).encryption_keys == ()


@pytest.mark.parametrize("version", [0, -1, 4])
def test_a_new_table_needs_a_known_version(version: int) -> None:
    """Also in a create commit."""
    with pytest.raises(ValidationFailed, match="format version"):
        fold(None, upgrade(version), *CREATE)


def add_key(key_id: str, by: str | None = None) -> dict[str, Any]:
    key = {"key-id": key_id, "encrypted-key-metadata": "AA==", "encrypted-by-id": by}
    return {"action": "add-encryption-key", "encryption-key": key}


def remove_key(key_id: str) -> dict[str, Any]:
    return {"action": "remove-encryption-key", "key-id": key_id}


def encrypted(snapshot_id: int, key_id: str) -> dict[str, Any]:
    more = {"first-row-id": 0, "added-rows": 0, "key-id": key_id}
    return add_snapshot(snapshot(snapshot_id, number=snapshot_id) | more)


LOCKED = result(parsed(document(3)), add_key("k"), add_key("spare", by="kek"), encrypted(1, "k"))


def test_a_key_that_a_retained_snapshot_names_stays() -> None:
    """Removing it is refused with key and snapshot; one that nothing needs goes."""
    with pytest.raises(ValidationFailed, match=r"encryption key 'k': snapshot 1 is encrypted with it"):
        fold(LOCKED, remove_key("k"))
    assert [key.key_id for key in result(LOCKED, remove_key("spare")).encryption_keys] == ["k"]


def test_a_key_that_another_one_is_encrypted_by_stays() -> None:
    """Unless that one goes in the same commit, in either order."""
    base = result(LOCKED, add_key("kek"))
    with pytest.raises(ValidationFailed, match=r"encryption key 'kek': key 'spare' is encrypted by it"):
        fold(base, remove_key("kek"))
    for both in (("kek", "spare"), ("spare", "kek")):
        assert [key.key_id for key in result(base, *map(remove_key, both)).encryption_keys] == ["k"]


def test_a_key_goes_with_the_last_snapshot_that_names_it() -> None:
    """In one commit, in either order."""
    expire = {"action": "remove-snapshots", "snapshot-ids": [1]}
    for updates in ((expire, remove_key("k")), (remove_key("k"), expire)):
        assert [key.key_id for key in result(LOCKED, *updates).encryption_keys] == ["spare"]


def test_a_key_is_rotated_in_one_commit() -> None:
    """Removed and added again under its id, encrypted anew, while snapshots name it."""
    after = result(LOCKED, remove_key("k"), add_key("k", by="new"))
    assert {key.key_id: key.encrypted_by_id for key in after.encryption_keys} == {"spare": "kek", "k": "new"}


def test_a_snapshot_names_a_key_that_is_there() -> None:
    """Added before it or after it in the commit; a key that is missing or removed is named in the refusal."""
    assert result(LOCKED, encrypted(2, "new"), add_key("new")).snapshots.find(2) is not None
    for updates in ([encrypted(2, "gone")], [encrypted(2, "spare"), remove_key("spare")]):
        with pytest.raises(ValidationFailed, match="snapshot 2: it names encryption key"):
            fold(LOCKED, *updates)


def test_a_table_that_came_with_a_missing_key_takes_other_commits() -> None:
    """Only what the commit adds or removes is judged."""
    base = parsed(with_history(snapshot(1, number=1) | {"key-id": "lost"}))
    assert fold(base, set_properties(a="b")).changed
