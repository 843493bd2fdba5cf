"""Table properties."""

from __future__ import annotations

import pytest

from app.commit.properties import deletes_previous_versions, integer, may_delete, previous_versions_kept
from app.errors import ValidationFailed
from tests.commit.folding import fold, result, set_properties
from tests.spec.documents import document, parsed

BASE = parsed(document(properties={"a": "1"}))
LIMIT = "write.metadata.previous-versions-max"


def test_properties_are_merged_and_removed() -> None:
    """Also the last one stays gone (O-19); removing what is absent is no change."""
    assert result(BASE, set_properties(b="2")).properties == {"a": "1", "b": "2"}
    gone = result(BASE, {"action": "remove-properties", "removals": ["a", "zz"]})
    assert gone.properties == {}
    assert not fold(gone, {"action": "remove-properties", "removals": ["a"]}).changed
    assert BASE.properties == {"a": "1"}


def test_setting_what_holds_is_no_change() -> None:
    """No new document for it; an empty value is a value."""
    assert not fold(BASE, set_properties(a="1"), set_properties()).changed
    assert result(BASE, set_properties(b="")).properties["b"] == ""
    assert result(BASE, set_properties(b=""), {"action": "remove-properties", "removals": ["b"]}).properties == {
        "a": "1"
    }


@pytest.mark.parametrize("value", ["many", "", "1.5", " 5", "99999999999", "٣"])
def test_a_limit_that_is_no_integer_is_refused_when_it_is_set(value: str) -> None:
    """Later commits would all stumble over it; one that a document brings along counts as the default."""
    with pytest.raises(ValidationFailed, match=LIMIT):
        fold(BASE, {"action": "set-properties", "updates": {LIMIT: value}})
    assert previous_versions_kept({LIMIT: value}) == 100
    brought = parsed(document(properties={LIMIT: value}))
    assert fold(brought, set_properties(a="2")).changed


@pytest.mark.parametrize(("value", "kept"), [("3", 3), ("+7", 7), ("0", 1), ("-4", 1)])
def test_the_log_keeps_at_least_one_entry(value: str, kept: int) -> None:
    """Whatever the property says."""
    assert previous_versions_kept({LIMIT: value}) == kept


def test_deletion_is_off_unless_asked_for() -> None:
    """In any letter case."""
    key = "write.metadata.delete-after-commit.enabled"
    assert [deletes_previous_versions(item) for item in ({}, {key: "TRUE"}, {key: "yes"})] == [False, True, False]


def test_integers_are_read_as_java_does() -> None:
    """32 bits, a sign, ASCII digits, nothing else."""
    assert [integer(text) for text in ("+1", "-2147483648", "2147483648", "0x1", "1_0", None)] == [
        1, -(2**31), None, None, None, None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "may"), [(None, True), ("true", True), ("TRUE", True), ("false", False), ("False", False), ("no", False)]
)
def test_gc_enabled_as_java_reads_it(value: str | None, may: bool) -> None:
    """Absent means true; whatever is not `true` is false."""
    assert may_delete({} if value is None else {"gc.enabled": value}) is may
