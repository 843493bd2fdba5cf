"""The children of one node of a schema under construction: in order, and by name.

A plan may hold an operation for each of thousands of columns, so appending, moving and finding one take the same time
however many there are.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable
from itertools import pairwise
from typing import Generic, Protocol, TypeVar


class Named(Protocol):
    """What can be a sibling; it is known by identity."""

    name: str
    gone: bool


T = TypeVar("T", bound=Named)


class Siblings(Generic[T]):
    """Nodes in order. Names are those of nodes that are not gone; whoever changes `name` or `gone` says so here."""

    __slots__ = ("_after", "_before", "_lengths", "_listed", "_names", "_stale")

    def __init__(self, nodes: Iterable[T] = ()) -> None:
        self._listed = list(nodes)
        self._stale = False
        # Neighbours by node, made with the first move; None stands before the first and after the last.
        self._after: dict[T | None, T | None] | None = None
        self._before: dict[T | None, T | None] = {}
        self._names: dict[str, OrderedDict[T, None]] | None = None
        self._lengths: Counter[int] = Counter()

    @property
    def listed(self) -> list[T]:
        """All, in order; a list that the next change may replace."""
        if self._stale and self._after is not None:
            self._listed = []
            node = self._after[None]
            while node is not None:
                self._listed.append(node)
                node = self._after[node]
            self._stale = False
        return self._listed

    def append(self, node: T) -> None:
        if self._after is not None:
            self._link(node, self._before[None])
        if not self._stale:
            self._listed.append(node)
        self.named(node)

    def arrange(self, order: Iterable[T]) -> None:
        """Have exactly these, in this order."""
        self._listed, self._stale, self._after = list(order), False, None

    def move(self, node: T, before: T | None) -> None:
        """To just before another one; None: to the end."""
        self._chain()
        if before is node:
            return
        assert self._after is not None
        self._unlink(node)
        self._link(node, self._before[before])
        self._stale = True

    def first(self) -> T | None:
        return self._chain()[None]

    def following(self, node: T) -> T | None:
        return self._chain()[node]

    def find(self, name: str) -> T | None:
        """The one with this name that has had it longest."""
        found = self._index().get(name)
        return None if found is None else next(iter(found))

    def lengths(self) -> list[int]:
        """Lengths that names have."""
        self._index()
        return list(self._lengths)

    def named(self, node: T) -> None:
        """`node` has taken its name."""
        if self._names is not None:
            self._names.setdefault(node.name, OrderedDict())[node] = None
            self._lengths[len(node.name)] += 1

    def unnamed(self, node: T) -> None:
        """`node` is about to give its name up."""
        if self._names is None or node.gone:
            return
        known = self._names[node.name]
        del known[node]
        if not known:
            del self._names[node.name]
        self._lengths[len(node.name)] -= 1
        if not self._lengths[len(node.name)]:
            del self._lengths[len(node.name)]

    def _index(self) -> dict[str, OrderedDict[T, None]]:
        if self._names is None:
            self._names = {}
            for node in self.listed:
                if not node.gone:
                    self.named(node)
        return self._names

    def _chain(self) -> dict[T | None, T | None]:
        if self._after is None:
            ends: list[T | None] = [None, *self._listed, None]
            self._after = dict(pairwise(ends))
            self._before = dict(pairwise(reversed(ends)))
        return self._after

    def _link(self, node: T, behind: T | None) -> None:
        assert self._after is not None
        following = self._after[behind]
        self._after[behind], self._after[node] = node, following
        self._before[node], self._before[following] = behind, node

    def _unlink(self, node: T) -> None:
        assert self._after is not None
        behind, following = self._before.pop(node), self._after.pop(node)
        self._after[behind], self._before[following] = following, behind
