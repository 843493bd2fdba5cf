"""The numbered lists of a table under change: partition specs and sort orders.

One commit may bring thousands of them, so each is found by its id and by what it means, never by looking at all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, insort
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from app.iceberg.partition import (
    PartitionField,
    PartitionSpec,
    UnboundPartitionSpec,
    meaning_of_spec,
)
from app.iceberg.sort import SortOrder, meaning_of_order
from app.iceberg.transforms import Transform

T = TypeVar("T", PartitionSpec, SortOrder)
Meaning = tuple[tuple[int, ...], Transform]


class Listing(ABC, Generic[T]):
    """In document order. Nothing is indexed before it is asked for: most commits change no list."""

    def __init__(self, items: tuple[T, ...] = ()) -> None:
        self._items: tuple[T, ...] | None = items
        self._by_id: dict[int, T] = {}
        self._equal: dict[Hashable, dict[int, None]] = {}
        self._indexed = False
        self._highest = -1

    def __len__(self) -> int:
        return len(self._by_id) if self._items is None else len(self._items)

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __contains__(self, listed_id: object) -> bool:
        return listed_id in self._index()

    @property
    def items(self) -> tuple[T, ...]:
        if self._items is None:
            self._items = tuple(self._by_id.values())
        return self._items

    @property
    def highest_id(self) -> int:
        """The highest id that was ever in this list; -1 for none."""
        self._index()
        return self._highest

    def append(self, item: T) -> None:
        self._index()[self._id(item)] = item
        self._note(item)
        self._items = None

    def remove(self, listed_id: int) -> None:
        item = self._index().pop(listed_id)
        equal = self._equal[self._meaning(item)]
        del equal[listed_id]
        if not equal:
            del self._equal[self._meaning(item)]
        self._items = None
        self._removed(item)

    def _same(self, meaning: Hashable) -> T | None:
        """The first with this meaning."""
        by_id = self._index()
        found = self._equal.get(meaning)
        return None if found is None else by_id[next(iter(found))]

    def _index(self) -> dict[int, T]:
        if not self._indexed:
            self._indexed = True
            for item in self.items:
                self._by_id[self._id(item)] = item
                self._note(item)
        return self._by_id

    def _note(self, item: T) -> None:
        self._highest = max(self._highest, self._id(item))
        self._equal.setdefault(self._meaning(item), {})[self._id(item)] = None
        self._added(item)

    @abstractmethod
    def _id(self, item: T) -> int: ...

    @abstractmethod
    def _meaning(self, item: T) -> Hashable: ...

    def _added(self, item: T) -> None:
        pass

    def _removed(self, item: T) -> None:
        pass


class Orders(Listing[SortOrder]):
    """Sort orders."""

    def same_as(self, order: SortOrder) -> SortOrder | None:
        """The first order that sorts alike."""
        return self._same(meaning_of_order(order))

    def _id(self, item: SortOrder) -> int:
        return item.order_id

    def _meaning(self, item: SortOrder) -> Hashable:
        return meaning_of_order(item)


class Specs(Listing[PartitionSpec]):
    """Partition specs, and what their fields' ids stand for."""

    def __init__(self, items: tuple[PartitionSpec, ...] = ()) -> None:
        super().__init__(items)
        # By field id, what it means, and the specs that say so.
        self._uses: dict[int, dict[Meaning, dict[int, PartitionField]]] = {}
        # The field ids that have a meaning, ascending.
        self._ids: dict[Meaning, list[int]] = {}

    def same_as(self, spec: UnboundPartitionSpec) -> PartitionSpec | None:
        """The first spec that partitions alike."""
        return self._same(meaning_of_spec(spec))

    def knows_field(self, field_id: int) -> bool:
        self._index()
        return field_id in self._uses

    def uses(self, field_id: int) -> Iterator[tuple[int, PartitionField]]:
        """For each meaning that a partition field id has in this list, the first spec with it, and the field there."""
        self._index()
        for holders in self._uses.get(field_id, {}).values():
            yield next(iter(holders.items()))

    def field_ids(self, source_ids: tuple[int, ...], transform: Transform) -> Iterator[int]:
        """Ids of the fields of one meaning, the highest first."""
        self._index()
        return reversed(self._ids.get((source_ids, transform), []))

    def _id(self, item: PartitionSpec) -> int:
        return item.spec_id

    def _meaning(self, item: PartitionSpec) -> Hashable:
        return meaning_of_spec(item)

    def _added(self, item: PartitionSpec) -> None:
        for part in item.fields:
            meaning = (part.source_ids, part.transform)
            holders = self._uses.setdefault(part.field_id, {}).setdefault(meaning, {})
            if not holders:
                insort(self._ids.setdefault(meaning, []), part.field_id)
            holders.setdefault(item.spec_id, part)

    def _removed(self, item: PartitionSpec) -> None:
        for part in item.fields:
            meaning = (part.source_ids, part.transform)
            holders = self._uses.get(part.field_id, {}).get(meaning, {})
            if holders.pop(item.spec_id, None) is None or holders:
                continue
            del self._uses[part.field_id][meaning]
            if not self._uses[part.field_id]:
                del self._uses[part.field_id]
            ids = self._ids[meaning]
            del ids[bisect_left(ids, part.field_id)]
            if not ids:
                del self._ids[meaning]
