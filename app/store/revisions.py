"""What schema this server speaks, and how a database's compares with it."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from app.errors import SchemaOutOfDate

REVISIONS: Final = ("0001", "0002", "0003", "0004", "0005")
"""Every migration, oldest first; a test compares them with the scripts."""

REVISION: Final = REVISIONS[-1]
"""The migration that leads to exactly the tables of `schema.py`."""


class SchemaState(NamedTuple):
    """`current` is the revision of the database, None when it is empty; `head` is what this server speaks."""

    current: str | None
    head: str
    status: Literal["empty", "older", "current", "newer"]


def state_of(current: str | None) -> SchemaState:
    if current is None:
        return SchemaState(None, REVISION, "empty")
    if current == REVISION:
        return SchemaState(current, REVISION, "current")
    return SchemaState(current, REVISION, "older" if current in REVISIONS else "newer")


def require_current(current: str | None) -> None:
    """SchemaOutOfDate, with what to do, unless `current` is what this server speaks."""
    state = state_of(current)
    if state.status == "current":
        return
    if state.status == "newer":
        raise SchemaOutOfDate(
            f"The database stands at schema {current}, which is newer than this server ({REVISION}): upgrade the server"
        )
    stands = "is empty" if current is None else f"stands at schema {current}, this server needs {REVISION}"
    raise SchemaOutOfDate(f"The database {stands}: run `icekeel db upgrade`")
