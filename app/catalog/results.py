"""What the use cases return: plain values that the edge renders. `metadata` is always a JSON document as served.

A large document comes in chunks. Nothing here knows HTTP.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

import msgspec

from app.iceberg.json.chunked_text import Text
from app.ports import Levels, Warehouse
from app.rules import Finding

Snapshots = Literal["all", "refs"]

Item = TypeVar("Item")


def version_tag(metadata_location: str, snapshots: Snapshots, config: Mapping[str, str]) -> str:
    """A tag of one version of a table in one representation. It changes with anything a client keeps with the table."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(msgspec.json.encode([metadata_location, snapshots, sorted(config.items())]))
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """`metadata_location` and `tag` are None for a staged table, which nobody can load yet."""

    metadata_location: str | None
    metadata: bytes | Text
    config: Mapping[str, str] = field(default_factory=dict)
    tag: str | None = None
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class NotModified:
    """The caller holds the version of this tag, which is the current one."""

    tag: str


@dataclass(frozen=True, slots=True)
class Committed:
    """`findings` are the warnings and waived faults of an accepted commit."""

    metadata_location: str
    metadata: bytes | Text
    tag: str
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
