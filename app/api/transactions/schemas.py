"""The body of a transaction."""

from __future__ import annotations

from app.api.shapes import Embedded, Shape, Some, TableIdentifier
from app.api.updates import TableRequirement, TableUpdate


class TableChange(Shape):
    """The part of a transaction that concerns one table."""

    identifier: TableIdentifier
    requirements: Embedded[list[TableRequirement]] | None = None
    updates: Embedded[list[TableUpdate]]


class CommitTransactionRequest(Shape):
    """Changes of several tables, applied all or none."""

    table_changes: Some[TableChange]
