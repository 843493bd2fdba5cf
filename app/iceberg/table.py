"""Table metadata in one place: the document, and what reads it, checks it and writes it."""

from app.iceberg.invariants import CLOCK_SKEW_MS, check_invariants, check_references
from app.iceberg.table_metadata import (
    DEFAULT_FORMAT_VERSION,
    ROW_LINEAGE_VERSION,
    SUPPORTED_FORMAT_VERSION,
    TableMetadata,
)
from app.iceberg.table_reader import parse_table_metadata, verify_table_metadata
from app.iceberg.table_writer import (
    compose_table_metadata,
    render_refs_only,
    render_table_metadata,
    stored_text,
)

__all__ = [
    "CLOCK_SKEW_MS",
    "DEFAULT_FORMAT_VERSION",
    "ROW_LINEAGE_VERSION",
    "SUPPORTED_FORMAT_VERSION",
    "TableMetadata",
    "check_invariants",
    "check_references",
    "compose_table_metadata",
    "parse_table_metadata",
    "render_refs_only",
    "render_table_metadata",
    "stored_text",
    "verify_table_metadata",
]
