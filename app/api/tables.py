"""Tables: the hot routes first."""

from __future__ import annotations

from starlette.requests import Request

from app import errors
from app.api import parameters, reading
from app.api.common import ALWAYS, BODY, CHANGE, COMMIT
from app.api.models import wire
from app.api.operations import Operations, Returns
from app.api.rendering import commit_answer, identifiers_answer, table_answer
from app.catalog import codings, commits, metrics, tables
from app.catalog.answers import Committed, LoadedTable
from app.catalog.turns import Peer
from app.spec import codec
from app.spec.partition import parse_unbound_partition_spec
from app.spec.requirement import parse_table_requirements
from app.spec.schema import parse_schema
from app.spec.sort import parse_sort_order
from app.spec.update import parse_table_updates
from app.web.answer import Answer, no_content
from app.web.codings import accepts_gzip
from app.web.recall import repeated

routes = Operations("Tables", ALWAYS)
ALL = "/v1/{prefix}/namespaces/{namespace}/tables"
ONE = f"{ALL}/{{table}}"
_PATH = (parameters.PREFIX, parameters.NAMESPACE)
_TABLE = (*_PATH, parameters.TABLE)
_KEY = parameters.IDEMPOTENCY_KEY
_LOADED = Returns(200, "The table as it is now.", wire.LoadTableResult, [parameters.ETAG])
_SEEN = (errors.NoSuchWarehouse, errors.NoSuchTable)
EXISTS = no_content()
_HOME = (errors.NoSuchWarehouse, errors.NoSuchNamespace)


@routes.declare(
    "GET",
    ONE,
    "loadTable",
    parameters=[
        *_TABLE,
        parameters.SNAPSHOTS,
        parameters.REFERENCED_BY,
        parameters.IF_NONE_MATCH,
        parameters.DELEGATION,
    ],
    returns=[_LOADED, Returns(304, "The caller's copy is current.", headers=[parameters.ETAG])],
    fails=[*_SEEN, errors.NotFound, errors.CorruptMetadata],
)
async def load_table(request: Request) -> Answer:
    """Load a table.

    `NotFoundException` means that the table exists but its metadata file has vanished, `CorruptMetadataException` that
    the file cannot be read.
    """
    who = reading.caller(request)
    load = tables.TableLoad(
        reading.context(request),
        who,
        reading.warehouse(request),
        reading.levels(request),
        reading.segment(request, "table"),
        snapshots=reading.query(request).get("snapshots", "all").lower(),
        if_none_match=reading.entity_tags(request),
        gzip=accepts_gzip(request),
    )

    anybody = who.peer is None

    async def answer(peer: Peer | None) -> Answer:
        return table_answer(await load.answer(None if anybody else peer))

    return await repeated(request, answer)


@routes.declare(
    "POST",
    ONE,
    "updateTable",
    parameters=[*_TABLE, _KEY],
    body=wire.CommitTableRequest,
    returns=[
        Returns(200, "The table after the commit.", wire.CommitTableResponse, [parameters.ETAG, parameters.FINDINGS])
    ],
    fails=[*_SEEN, errors.NoSuchNamespace, errors.NotFound, errors.AlreadyExists, *COMMIT, *BODY, *CHANGE],
)
async def update_table(request: Request) -> Answer:
    """Commit to a table, or complete a staged create.

    Requirements are checked against the present state (409), updates are applied in order, and the result is judged by
    the rules of the evolution engine (400). An unknown requirement or update is refused, and nothing is stored.
    """
    body, raw = await reading.json_body(request)
    levels, name = reading.levels(request), reading.segment(request, "table")
    reading.check_identifier(body, levels, name)
    requirements = await reading.parsed(
        raw, parse_table_requirements, codec.optional(body, "requirements", []), "$.requirements"
    )
    updates = await reading.parsed(raw, parse_table_updates, codec.required(body, "updates"), "$.updates")
    committed = await commits.commit_table(
        reading.context(request),
        reading.caller(request, raw),
        reading.warehouse(request),
        levels,
        name,
        requirements,
        updates,
    )
    reading.count(request, "commits", kind="table")
    return commit_answer(await _coded_commit(request, committed))


@routes.declare(
    "HEAD",
    ONE,
    "tableExists",
    parameters=_TABLE,
    returns=[Returns(204, "It exists.")],
    fails=_SEEN,
)
async def table_exists(request: Request) -> Answer:
    """Tell whether a table exists."""
    ctx, warehouse = reading.context(request), reading.warehouse(request)
    levels, name = reading.levels(request), reading.segment(request, "table")

    async def answer(_: Peer | None) -> Answer:
        await tables.table_exists(ctx, warehouse, levels, name)
        return EXISTS

    return await repeated(request, answer)


@routes.declare(
    "POST",
    f"{ONE}/metrics",
    "reportMetrics",
    parameters=_TABLE,
    body=wire.MetricsReport,
    returns=[Returns(204, "Taken.")],
    fails=[*_SEEN, *BODY],
)
async def report_metrics(request: Request) -> Answer:
    """Take a scan or commit report. Kinds and members that this server does not know are fine."""
    report, _ = await reading.json_body(request)
    await metrics.report_metrics(
        reading.context(request),
        reading.caller(request),
        reading.warehouse(request),
        reading.levels(request),
        reading.segment(request, "table"),
        report,
    )
    return no_content()


@routes.declare(
    "GET",
    ALL,
    "listTables",
    parameters=[*_PATH, parameters.PAGE_TOKEN, parameters.PAGE_SIZE],
    returns=[Returns(200, "Tables in name order.", wire.ListTablesResponse)],
    fails=_HOME,
)
async def list_tables(request: Request) -> Answer:
    """List the tables of a namespace."""
    levels = reading.levels(request)
    listed = await tables.list_tables(
        reading.context(request), reading.warehouse(request), levels, reading.page(reading.query(request))
    )
    return identifiers_answer(levels, listed)


@routes.declare(
    "POST",
    ALL,
    "createTable",
    parameters=[*_PATH, parameters.DELEGATION, _KEY],
    body=wire.CreateTableRequest,
    returns=[Returns(200, "The new or staged table.", wire.LoadTableResult, [parameters.ETAG, parameters.FINDINGS])],
    fails=[*_HOME, errors.AlreadyExists, errors.EvolutionRefused, *BODY, *CHANGE],
)
async def create_table(request: Request) -> Answer:
    """Create a table, or stage one.

    Column ids are assigned anew from 1, and partition and sort fields follow their columns. A staged table is not
    stored: a later commit with `assert-create` makes it.
    """
    body, raw = await reading.json_body(request)
    spec, order = body.get("partition-spec"), body.get("write-order")
    wanted = tables.TableRequest(
        name=codec.required_str(body, "name"),
        schema=await reading.parsed(raw, parse_schema, codec.required(body, "schema"), "$.schema"),
        spec=None if spec is None else parse_unbound_partition_spec(spec, "$.partition-spec"),
        order=None if order is None else parse_sort_order(order, "$.write-order"),
        location=codec.optional_str(body, "location"),
        properties=codec.as_str_map(codec.optional(body, "properties", {}), "$.properties"),
        stage=codec.optional_bool(body, "stage-create") or False,
    )
    made = await tables.create_table(
        reading.context(request),
        reading.caller(request, raw),
        reading.warehouse(request),
        reading.levels(request),
        wanted,
    )
    return table_answer(await _coded(request, made))


@routes.declare(
    "DELETE",
    ONE,
    "dropTable",
    parameters=[*_TABLE, parameters.PURGE, _KEY],
    returns=[Returns(204, "It is gone.")],
    fails=[*_SEEN, *CHANGE],
)
async def drop_table(request: Request) -> Answer:
    """Drop a table. Its files stay unless `purgeRequested` is true; then they are deleted in the background."""
    raw = await reading.no_body(request)
    purge = reading.flag(reading.query(request).get("purgeRequested"), "purgeRequested")
    await tables.drop_table(
        reading.context(request),
        reading.caller(request, raw),
        reading.warehouse(request),
        reading.levels(request),
        reading.segment(request, "table"),
        purge=purge,
    )
    return no_content()


@routes.declare(
    "POST",
    "/v1/{prefix}/namespaces/{namespace}/register",
    "registerTable",
    parameters=[*_PATH, parameters.DELEGATION, _KEY],
    body=wire.RegisterTableRequest,
    returns=[Returns(200, "The registered table.", wire.LoadTableResult, [parameters.ETAG, parameters.FINDINGS])],
    fails=[*_HOME, errors.NotFound, errors.AlreadyExists, *BODY, *CHANGE],
)
async def register_table(request: Request) -> Answer:
    """Make an existing metadata file known as a table; `overwrite` moves the pointer of one that is there.

    Overwriting restores any version of the table, so no rule refuses it: what a commit to that version would have been
    refused for is told in `Icekeel-Findings` and in the history.
    """
    body, raw = await reading.json_body(request)
    registered = await tables.register_table(
        reading.context(request),
        reading.caller(request, raw),
        reading.warehouse(request),
        reading.levels(request),
        codec.required_str(body, "name"),
        codec.required_str(body, "metadata-location"),
        overwrite=codec.optional_bool(body, "overwrite") or False,
    )
    return table_answer(await _coded(request, registered))


@routes.declare(
    "POST",
    f"{ONE}/unregister",
    "unregisterTable",
    parameters=[*_TABLE, _KEY],
    returns=[Returns(200, "The last state of the table; all files stay.", wire.CommitTableResponse)],
    fails=[*_SEEN, errors.NotFound, *CHANGE],
)
async def unregister_table(request: Request) -> Answer:
    """Forget a table and leave every file where it is."""
    raw = await reading.no_body(request)
    table = await tables.unregister_table(
        reading.context(request),
        reading.caller(request, raw),
        reading.warehouse(request),
        reading.levels(request),
        reading.segment(request, "table"),
    )
    return commit_answer(await _coded_commit(request, table))


@routes.declare(
    "POST",
    "/v1/{prefix}/tables/rename",
    "renameTable",
    parameters=[parameters.PREFIX, _KEY],
    body=wire.RenameTableRequest,
    returns=[Returns(204, "Renamed; files stay where they are.")],
    fails=[*_SEEN, errors.NoSuchNamespace, errors.AlreadyExists, *BODY, *CHANGE],
)
async def rename_table(request: Request) -> Answer:
    """Rename a table, also into another namespace of its warehouse."""
    body, raw = await reading.json_body(request)
    source = reading.identifier(codec.required(body, "source"), "$.source")
    destination = reading.identifier(codec.required(body, "destination"), "$.destination")
    await tables.rename_table(
        reading.context(request), reading.caller(request, raw), reading.warehouse(request), source, destination
    )
    return no_content()


async def _coded(request: Request, table: LoadedTable) -> LoadedTable:
    return await codings.loaded(reading.context(request), table) if accepts_gzip(request) else table


async def _coded_commit(request: Request, table: Committed) -> Committed:
    return await codings.committed(reading.context(request), table) if accepts_gzip(request) else table
