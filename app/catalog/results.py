"""What the use cases return: plain values that the API renders. `metadata` is always a JSON document as served.

A large document comes in chunks, or compressed when the client takes gzip.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from app.iceberg.json.chunked_text import Deflated, Text
from app.ports import Levels, Warehouse
from app.rules import Finding

Item = TypeVar("Item")


@dataclass(slots=True)
class LoadedTable:
    """`metadata_location` and `etag` are None for a staged table, which nobody can load yet.

    `rendered` is what the API made of it, kept for whoever loads the same version next.
    """

    metadata_location: str | None
    metadata: bytes | Text | Deflated
    config: Mapping[str, str] = field(default_factory=dict)
    etag: str | None = None
    findings: tuple[Finding, ...] = ()
    rendered: Any = field(default=None, compare=False, repr=False)


@dataclass(slots=True)
class NotModified:
    """The caller's copy is current; there is no body. `rendered` as in `LoadedTable`."""

    etag: str
    rendered: Any = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Committed:
    """`findings` are the warnings and waived faults of an accepted commit."""

    metadata_location: str
    metadata: bytes | Text | Deflated
    etag: str
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class LoadedView:
    metadata_location: str
    metadata: bytes | Text
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NamespaceView:
    """A namespace with its properties, a computed `location` included when none is set."""

    levels: Levels
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PropertiesResult:
    """`missing` holds requested removals that were not set."""

    updated: tuple[str, ...]
    removed: tuple[str, ...]
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Listed(Generic[Item]):
    """`next_token` None means there is nothing more."""

    items: tuple[Item, ...]
    next_token: str | None = None


@dataclass(frozen=True, slots=True)
class CatalogConfig:
    """What a client is told about a warehouse; endpoints and lifetimes are the API's to add."""

    warehouse: Warehouse
    defaults: Mapping[str, str]
    overrides: Mapping[str, str]
