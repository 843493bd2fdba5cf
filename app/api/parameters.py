"""Parameters that operations share, as the document shows them."""

from __future__ import annotations

from app.api.operations import Header, Parameter

PREFIX = Parameter(
    "prefix",
    "path",
    "Warehouse name, as `/v1/config` hands it out. Paths without it reach the default warehouse.",
    required=True,
)
WAREHOUSE_PATH = Parameter("warehouse", "path", "Warehouse name.", required=True)
NAMESPACE = Parameter(
    "namespace",
    "path",
    "Levels of the namespace joined by the unit separator (0x1F, written `%1F`), each level percent-encoded by itself.",
    required=True,
)
TABLE = Parameter("table", "path", "Table name, percent-encoded as one segment.", required=True)
VIEW = Parameter("view", "path", "View name, percent-encoded as one segment.", required=True)
CODE = Parameter(
    "code", "path", "Rule code, such as `ICE202`.", {"type": "string", "pattern": "^[A-Za-z]+[0-9]+$"}, required=True
)

WAREHOUSE_QUERY = Parameter("warehouse", "query", "Name or location of the warehouse; the default one when absent.")
PARENT = Parameter(
    "parent", "query", "Namespace whose direct children to list, levels joined by 0x1F; top level when absent or empty."
)
PAGE_TOKEN = Parameter(
    "pageToken",
    "query",
    "Absent: everything in one answer. Empty: the first page. Else the `next-page-token` of the page before.",
)
PAGE_SIZE = Parameter(
    "pageSize",
    "query",
    "Most entries of a page; an upper bound that the server may lower.",
    {"type": "integer", "minimum": 1},
)
SNAPSHOTS = Parameter(
    "snapshots",
    "query",
    "`refs` leaves out snapshots that no branch or tag points at.",
    {"type": "string", "enum": ["all", "refs"], "default": "all"},
)
REFERENCED_BY = Parameter(
    "referenced-by",
    "query",
    "Views through which this is reached, outermost first, comma-separated. Accepted and not used yet.",
)
PURGE = Parameter(
    "purgeRequested",
    "query",
    "`true` (in any letter case) deletes the table's files too.",
    {"type": "string", "default": "false"},
)
LIMIT = Parameter("limit", "query", "Most entries to return.", {"type": "integer", "minimum": 1, "maximum": 1000})
SINCE = Parameter(
    "since", "query", "Changes from then on: epoch milliseconds, ISO 8601 (`2026-11-01`), or an age such as `7d`."
)
UNTIL = Parameter("until", "query", "Changes before then, written as in `since`.")
BY = Parameter("by", "query", "Changes by this principal.")
CHANGE_KIND = Parameter("change", "query", "Changes with an aspect of this kind, such as `dropped` or `renamed`.")
CHANGED_FIELD = Parameter("field-id", "query", "Changes of this field id.", {"type": "integer"})
FIELD_ID = Parameter(
    "field_id", "path", "Field id of a column, present or dropped.", {"type": "integer"}, required=True
)
WAIVER_ID = Parameter("waiver-id", "query", "The waiver to take back.", required=True)

IDEMPOTENCY_KEY = Parameter(
    "Idempotency-Key",
    "header",
    "A UUID for this change. The same key and request again gives the same outcome, without a second effect.",
    {"type": "string", "format": "uuid"},
)
IF_NONE_MATCH = Parameter(
    "If-None-Match",
    "header",
    "Entity tags the caller holds; 304 when one is still current. Lists, weak tags and `*` are fine.",
)
DELEGATION = Parameter(
    "X-Iceberg-Access-Delegation",
    "header",
    "Ways of access delegation the client knows. This server signs and vends nothing, whatever is asked for.",
)

ETAG = Header("ETag", "Tag of this representation of this version, for If-None-Match.")
FINDINGS = Header(
    "Icekeel-Findings", "Codes and messages of the warnings that the accepted change raised, as a JSON array."
)
