"""The body of the table ranking."""

from __future__ import annotations

from app.api.shapes import Int32, Int64, Shape


class TableStanding(Shape):
    """One table. `schema-count` and `schema-changed-at-ms` (epoch ms) are absent where no commit has told yet."""

    namespace: list[str]
    name: str
    table_uuid: str
    format_version: Int32
    last_column_id: Int32
    field_count: Int32
    retired_ids: Int32
    current_schema_id: Int32
    updated_at_ms: Int64
    schema_count: Int32 | None = None
    schema_changed_at_ms: Int64 | None = None


class StandingList(Shape):
    """Tables, largest first."""

    tables: list[TableStanding]
    next_page_token: str | None = None
