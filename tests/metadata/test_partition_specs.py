"""Adding, choosing and removing partition specs."""

from __future__ import annotations

from typing import Any

import pytest

from app.errors import CommitFailed, SpecError, ValidationFailed
from app.iceberg.table import TableMetadata
from tests.iceberg.documents import column, document, parsed, schema, snapshot
from tests.metadata.folding import (
    CREATE,
    add_schema,
    add_snapshot,
    add_spec,
    fold,
    result,
    set_current,
    written,
)

BASE = parsed(document())
LAST = {"action": "set-default-spec", "spec-id": -1}


def ids(table: TableMetadata, spec_id: int) -> list[int]:
    spec = table.spec(spec_id)
    assert spec is not None
    return [part.field_id for part in spec.fields]


def choose(spec_id: int) -> dict[str, Any]:
    return {"action": "set-default-spec", "spec-id": spec_id}


def test_a_new_spec_is_numbered_and_counted() -> None:
    """Id above all others, field ids above the last one, and both counters follow."""
    after = result(BASE, add_spec((1, "bucket[4]", "b"), (2, "identity", "name")), LAST)
    assert (after.default_spec_id, ids(after, 1), after.last_partition_id) == (1, [1000, 1001], 1001)


def test_sent_field_ids_are_kept() -> None:
    """What manifests of the writer already hold stays; fields without one take free ids."""
    after = result(BASE, add_spec((1, "bucket[4]", "b", 1001), (2, "identity", "name"), (1, "void", "v")))
    assert (ids(after, 1), after.last_partition_id) == ([1001, 1000, 1002], 1002)


def test_a_compatible_spec_is_found_again() -> None:
    """Field ids and spec id do not matter, order and names do; -1 then means it."""
    first = result(BASE, add_spec((1, "bucket[4]", "b"), (2, "identity", "name")), LAST)
    same = fold(first, add_spec((1, "bucket[4]", "b", 2000), (2, "identity", "name", 2001), spec_id=9), LAST)
    assert not same.changed
    assert len(result(first, add_spec((2, "identity", "name"), (1, "bucket[4]", "b"))).partition_specs) == 3
    back = result(first, add_spec(), LAST)
    assert (back.default_spec_id, len(back.partition_specs)) == (0, 2)


def test_an_equivalent_field_keeps_its_id_under_another_name() -> None:
    """Source and transform decide, in whichever spec they were."""
    first = result(BASE, add_spec((1, "bucket[4]", "b")), LAST)
    after = result(first, add_spec((2, "identity", "name"), (1, "bucket[4]", "renamed")))
    assert (ids(after, 2), after.last_partition_id) == ([1001, 1000], 1001)


@pytest.mark.parametrize(
    "field", [(2, "identity", "name", 1000), (1, "bucket[8]", "b", 1000), (1, "identity", "id", 1000)]
)
def test_a_field_id_means_one_partition_field(field: tuple[Any, ...]) -> None:
    """The same id for another source or transform is refused."""
    first = result(BASE, add_spec((1, "bucket[4]", "b")), LAST)
    with pytest.raises(ValidationFailed, match="Conflicting partition fields"):
        fold(first, add_spec(field))


def test_void_may_take_the_place_of_a_dropped_field() -> None:
    """As version 1 tables did it, before or after an upgrade."""
    first = result(BASE, add_spec((1, "bucket[4]", "b")), LAST)
    after = result(first, add_spec((1, "void", "b", 1000)))
    assert ids(after, 2) == [1000]


def test_two_fields_of_one_spec_have_two_ids() -> None:
    """Whatever the client sends."""
    with pytest.raises(ValidationFailed, match="the same field-id"):
        fold(BASE, add_spec((1, "bucket[4]", "b", 1000), (2, "identity", "name", 1000)))


def test_version_1_counts_from_1000_in_each_spec() -> None:
    """Its readers find partition fields by position."""
    base = parsed(document(1))
    after = result(base, add_spec((1, "bucket[4]", "b")), add_spec((1, "void", "b"), (2, "identity", "name")))
    assert (ids(after, 1), ids(after, 2)) == ([1000], [1000, 1001])
    with pytest.raises(ValidationFailed, match="sequential"):
        fold(base, add_spec((1, "bucket[4]", "b", 1001)))


@pytest.mark.parametrize(
    "field",
    [(9, "identity", "x"), (3, "identity", "s"), (2, "year", "y"), (5, "identity", "e"), (2, "zorder", "z"),
     (2, "identity", "id")],
)  # fmt: skip
def test_a_spec_must_fit_the_schema(field: tuple[Any, ...]) -> None:
    """Missing source, struct, wrong type, inside a list, unknown transform, name of another column."""
    nested = [
        column(3, "s", {"type": "struct", "fields": [column(6, "x")]}),
        column(4, "l", {"type": "list", "element-id": 5, "element": "int", "element-required": False}),
    ]
    base = parsed(
        document(schemas=[schema(0, column(1, "id"), column(2, "name", "string"), *nested)], last_column_id=6)
    )
    with pytest.raises(ValidationFailed):
        fold(base, add_spec(field))


@pytest.mark.parametrize("fields", [[(1, "identity", "")], [(1, "bucket[2]", "x"), (2, "identity", "x")]])
def test_partition_names_are_set_and_unique(fields: list[tuple[Any, ...]]) -> None:
    """A fault of form."""
    with pytest.raises(SpecError):
        fold(BASE, add_spec(*fields))


def test_a_spec_is_bound_to_the_schema_of_its_moment() -> None:
    """A column that an earlier update added can be used, one that a later one adds cannot."""
    wider = [add_schema(schema(1, column(1, "id"), column(3, "d", "date"))), set_current()]
    assert ids(result(BASE, *wider, add_spec((3, "day", "d_day")), LAST), 1) == [1000]
    with pytest.raises(ValidationFailed, match="source column"):
        fold(BASE, add_spec((3, "day", "d_day")), LAST, *wider)


def test_only_known_specs_can_be_the_default() -> None:
    """-1 without an added spec, unknown ids, and a spec removed in the same commit are refused."""
    first = result(BASE, add_spec((1, "bucket[4]", "b")))
    remove = {"action": "remove-partition-specs", "spec-ids": [1]}
    for updates in (
        [LAST],
        [choose(7)],
        [remove, choose(1)],
        [add_spec((2, "identity", "name")), remove | {"spec-ids": [2]}, LAST],
    ):
        with pytest.raises(ValidationFailed):
            fold(first, *updates)
    assert result(first, choose(1)).default_spec_id == 1
    assert not fold(first, choose(0)).changed


def test_removal_spares_the_default_spec() -> None:
    """Unknown ids are ignored; ids removed in this commit are not given out again."""
    first = result(BASE, add_spec((1, "bucket[4]", "b")))
    remove = {"action": "remove-partition-specs", "spec-ids": [1, 55]}
    assert [spec.spec_id for spec in result(first, remove).partition_specs] == [0]
    assert [spec.spec_id for spec in result(first, remove, add_spec((2, "identity", "name"))).partition_specs] == [0, 2]
    assert not fold(first, remove | {"spec-ids": [55]}).changed
    with pytest.raises(ValidationFailed, match="default partition spec"):
        fold(first, remove | {"spec-ids": [0]})


def test_files_that_name_another_spec_are_not_taken_in() -> None:
    """Manifests hold the number that the writer guessed; under another one their data would be misread."""
    raced = result(BASE, add_spec((1, "bucket[4]", "b")))
    updates = [add_spec((2, "identity", "name", 1001), spec_id=1), LAST, add_snapshot(snapshot(1, number=1))]
    with pytest.raises(CommitFailed, match="partition spec 1"):
        fold(raced, *updates)
    assert result(BASE, *updates).default_spec_id == 1


def test_a_new_table_needs_its_schema_first() -> None:
    """A spec is bound to columns."""
    with pytest.raises(ValidationFailed, match="before a schema"):
        fold(None, CREATE[4])


@pytest.mark.parametrize("field_id", [2147483448, 2147483647])
def test_no_partition_field_takes_the_end_of_the_range(field_id: int) -> None:
    """The counter would never come back, and no partition field could be added after it."""
    fields = [{"source-id": 1, "field-id": field_id, "name": "p", "transform": "bucket[4]"}]
    with pytest.raises(ValidationFailed, match=f"field-id {field_id} of p is above 2147483447"):
        fold(BASE, {"action": "add-spec", "spec": {"fields": fields}})
    last = [{**fields[0], "field-id": 2147483447}]
    after = result(BASE, {"action": "add-spec", "spec": {"fields": last}})
    assert after.last_partition_id == 2147483447
    with pytest.raises(ValidationFailed, match="no partition field id is left"):
        fold(after, add_spec((1, "bucket[5]", "q")))


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("transform", ["bucket[4]", "void", "identity", "truncate[2]", "year", "zorder"])
def test_which_transforms_may_be_of_several_columns(version: int, transform: str) -> None:
    """Bucket and void, from version 3 on; those made for one column never, and unknown ones are added by nobody."""
    update = {"action": "add-spec", "spec": {"fields": [{"source-ids": [1, 2], "transform": transform, "name": "p"}]}}
    base = parsed(document(version))
    if version == 3 and transform in ("bucket[4]", "void"):
        assert written(result(base, update))["partition-specs"][-1]["fields"][0]["source-ids"] == [1, 2]
        return
    with pytest.raises(ValidationFailed):
        fold(base, update)


def test_a_list_of_one_source_is_the_source() -> None:
    """In every version, and the same spec."""
    single = {"source-ids": [1], "transform": "bucket[4]", "name": "p"}
    for version in (1, 2, 3):
        after = result(parsed(document(version)), {"action": "add-spec", "spec": {"fields": [single]}})
        assert written(after)["partition-specs"][-1]["fields"][0]["source-id"] == 1
        assert not fold(after, add_spec((1, "bucket[4]", "p"))).changed
