"""How an operation is declared: once, for the router, the `endpoints` of `/v1/config` and the OpenAPI document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, TypeVar

from app.api.errors import STATUSES
from app.api.models.wire import ErrorResponse
from app.edge.route import Endpoint, LeanRoute

Handler = TypeVar("Handler", bound=Endpoint)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A path, query or header parameter: where it stands, what it means, what it may be (JSON schema)."""

    name: str
    where: str
    text: str
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})
    required: bool = False

    def document(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "in": self.where,
            "required": self.required,
            "description": self.text,
            "schema": dict(self.schema),
        }


@dataclass(frozen=True, slots=True)
class Header:
    """A header of an answer."""

    name: str
    text: str

    def document(self) -> dict[str, Any]:
        return {"description": self.text, "schema": {"type": "string"}}


@dataclass(frozen=True, slots=True)
class Returns:
    """A success: status, meaning, shape of the body (None: no body) and headers."""

    status: int
    text: str
    model: type | None = None
    headers: Sequence[Header] = ()
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class Fails:
    """A failure: the kinds that an operation may answer beside the common ones."""

    kinds: tuple[type[Exception], ...]

    def by_status(self) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        for kind in self.kinds:
            status, name = STATUSES[kind]
            if name not in found.setdefault(status, []):
                found[status].append(name)
        return found


@dataclass(frozen=True, slots=True)
class Operation:
    """One declared operation. `body` is the shape of the request body; `tag` groups operations in the document."""

    method: str
    path: str
    id: str
    tag: str
    endpoint: Endpoint
    parameters: tuple[Parameter, ...]
    body: type | None
    returns: tuple[Returns, ...]
    fails: Fails

    @property
    def is_iceberg(self) -> bool:
        return self.path.startswith("/v1/")

    def route(self) -> LeanRoute:
        """What the router tries."""
        return LeanRoute(self.method, self.path, self.id, self.endpoint)

    def document(self, schema: Callable[[type], dict[str, Any]]) -> dict[str, Any]:
        """The operation object of OpenAPI; `schema` answers the JSON schema of a shape, or a reference to it."""
        summary, _, description = (self.endpoint.__doc__ or "").strip().partition("\n\n")
        out: dict[str, Any] = {"tags": [self.tag], "summary": " ".join(summary.split()).rstrip(".")}
        if description := " ".join(description.split()):
            out["description"] = description
        out |= {"operationId": self.id, "responses": self._responses(schema)}
        out["parameters"] = [p.document() for p in self.parameters]
        if self.body is not None:
            out["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema(self.body)}}}
        return out

    def _responses(self, schema: Callable[[type], dict[str, Any]]) -> dict[str, dict[str, Any]]:
        out: dict[str, dict[str, Any]] = {}
        for success in self.returns:
            entry: dict[str, Any] = {"description": success.text}
            if success.model is not None:
                shape = schema(success.model) if success.model is not str else {"type": "string"}
                entry["content"] = {success.content_type: {"schema": shape}}
            if success.headers:
                entry["headers"] = {h.name: h.document() for h in success.headers}
            out[str(success.status)] = entry
        for status, names in sorted(self.fails.by_status().items()):
            entry = {"description": f"{HTTPStatus(status).phrase}: {', '.join(names)}"}
            if self.method != "HEAD":
                entry["content"] = {"application/json": {"schema": schema(ErrorResponse)}}
            if status in (429, 503):
                entry["headers"] = {
                    "Retry-After": Header("Retry-After", "Seconds after which to try again.").document()
                }
            out[str(status)] = entry
        return out


class Operations:
    """The operations of one resource, in the order in which they are tried."""

    def __init__(self, tag: str, common: tuple[type[Exception], ...]) -> None:
        self._tag = tag
        self._common = common
        self._declared: list[Operation] = []

    def __iter__(self) -> Iterator[Operation]:
        return iter(self._declared)

    def declare(
        self,
        method: str,
        path: str,
        operation_id: str,
        *,
        parameters: Sequence[Parameter] = (),
        body: type | None = None,
        returns: Sequence[Returns],
        fails: Sequence[type[Exception]] = (),
    ) -> Callable[[Handler], Handler]:
        """Declare the decorated function as the operation; its docstring is the documentation."""

        def register(endpoint: Handler) -> Handler:
            self._declared.append(
                Operation(
                    method=method,
                    path=path,
                    id=operation_id,
                    tag=self._tag,
                    endpoint=endpoint,
                    parameters=tuple(parameters),
                    body=body,
                    returns=tuple(returns),
                    fails=Fails((*self._common, *fails)),
                )
            )
            return endpoint

        return register
