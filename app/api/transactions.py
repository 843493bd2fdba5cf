"""Commits to several tables at once."""

from __future__ import annotations

from starlette.requests import Request

from app import errors
from app.api import parameters, reading
from app.api.common import ALWAYS, BODY, CHANGE, COMMIT
from app.api.models import wire
from app.api.operations import Operations, Returns
from app.catalog import commits
from app.spec import codec
from app.spec.requirement import parse_table_requirements
from app.spec.update import parse_table_updates
from app.web.answer import Answer, no_content

routes = Operations("Transactions", ALWAYS)


@routes.declare(
    "POST",
    "/v1/{prefix}/transactions/commit",
    "commitTransaction",
    parameters=[parameters.PREFIX, parameters.IDEMPOTENCY_KEY],
    body=wire.CommitTransactionRequest,
    returns=[Returns(204, "Every change is stored.")],
    fails=[
        errors.NoSuchWarehouse,
        errors.NoSuchNamespace,
        errors.NoSuchTable,
        errors.NotFound,
        errors.AlreadyExists,
        *COMMIT,
        *BODY,
        *CHANGE,
    ],
)
async def commit_transaction(request: Request) -> Answer:
    """Commit to any number of tables, all or none.

    Staged creates may be among them, and one table may come up several times: each of its changes is checked on what
    those before it made, as if they had been sent one after the other, and the table gets one new version.
    """
    body, raw = await reading.json_body(request)
    changes = await reading.parsed(raw, _changes, codec.required_list(body, "table-changes"), "$.table-changes")
    await commits.commit_transaction(
        reading.context(request), reading.caller(request, raw), reading.warehouse(request), changes
    )
    reading.count(request, "commits", kind="transaction")
    return no_content()


def _changes(entries: codec.Json, path: str) -> list[commits.TableChange]:
    return [_change(entry, f"{path}[{at}]") for at, entry in enumerate(entries)]


def _change(entry: codec.Json, path: str) -> commits.TableChange:
    obj = codec.as_object(entry, path)
    levels, name = reading.identifier(codec.required(obj, "identifier", path), f"{path}.identifier")
    return commits.TableChange(
        levels,
        name,
        parse_table_requirements(codec.optional(obj, "requirements", []), f"{path}.requirements"),
        parse_table_updates(codec.required(obj, "updates", path), f"{path}.updates"),
    )
