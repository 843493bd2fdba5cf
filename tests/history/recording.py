"""What clients did and heard, and what was found afterwards: plain values for the checker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Outcome = Literal["ok", "refused", "unknown"]


@dataclass(frozen=True)
class Call:
    """One call of one client, retries included: from before the first attempt to the last answer.

    `effects` maps the uuid of each table to the snapshot id that the call would add to it. `seen` is what a load
    showed: the snapshot ids of the table `uuid`, in order. `answers` holds the metadata location that each answer to
    the same idempotency key gave; times are nanoseconds of one clock.
    """

    client: int
    kind: str
    began: int
    ended: int
    outcome: Outcome
    effects: Mapping[str, int] = field(default_factory=dict)
    uuid: str | None = None
    name: str | None = None
    to_name: str | None = None
    seen: tuple[int, ...] | None = None
    answers: tuple[str | None, ...] = ()


@dataclass(frozen=True)
class Snapshot:
    snapshot_id: int
    parent: int | None
    sequence: int


@dataclass(frozen=True)
class Version:
    """One metadata file: where it is, which files its log names (oldest first), which snapshots it holds."""

    location: str
    number: int
    log: tuple[str, ...]
    snapshots: tuple[Snapshot, ...]
    updated_ms: int


@dataclass(frozen=True)
class Found:
    """The state after everything: per uuid the versions that were read (newest last), and which names lead where."""

    versions: Mapping[str, tuple[Version, ...]]
    names: Mapping[str, str]
