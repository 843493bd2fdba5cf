"""Branches and tags."""

from __future__ import annotations

from typing import Any

import pytest

from app.errors import SpecError
from app.iceberg.ref import parse_ref, ref_to_json


def test_a_ref_survives_a_round_trip() -> None:
    """All members, unknown ones too, come out as they went in; nulls do not."""
    value = {
        "snapshot-id": -(2**63),
        "type": "branch",
        "min-snapshots-to-keep": 1,
        "max-snapshot-age-ms": 2**62,
        "max-ref-age-ms": 5,
        "x-new": [1],
    }
    assert ref_to_json(parse_ref(value)) == value
    assert ref_to_json(parse_ref({"snapshot-id": 1, "type": "TAG", "max-ref-age-ms": None})) == {
        "snapshot-id": 1,
        "type": "tag",
    }


@pytest.mark.parametrize(
    "change",
    [
        {"type": "bookmark"},
        {"type": None},
        {"snapshot-id": None},
        {"snapshot-id": "1"},
        {"max-ref-age-ms": 0},
        {"type": "tag", "min-snapshots-to-keep": 1},
        {"type": "tag", "max-snapshot-age-ms": 1},
        {"min-snapshots-to-keep": -1},
        {"max-snapshot-age-ms": 2**63},
    ],
)
def test_refs_that_no_reader_loads_are_refused(change: dict[str, Any]) -> None:
    """Retention numbers are positive, and tags take only an age of their own."""
    with pytest.raises(SpecError):
        parse_ref({"snapshot-id": 1, "type": "branch"} | change)


def test_unknown_members_do_not_make_a_difference_to_clients() -> None:
    """A client that sets the same ref again changes nothing, even if the stored one carries more."""
    one = parse_ref({"snapshot-id": 1, "type": "branch", "x-new": 1})
    assert one.same(parse_ref({"snapshot-id": 1, "type": "branch"}))
    assert not one.same(parse_ref({"snapshot-id": 1, "type": "branch", "max-ref-age-ms": 9}))
