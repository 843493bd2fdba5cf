"""The path operations of the documentation."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from fastapi import APIRouter, Request
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse

from app import errors
from app.api.responses import fails, success
from app.api.route import StrictRoute
from app.edge.answer import Answer

router = APIRouter(route_class=StrictRoute, tags=["Operations"])

_ALWAYS = (errors.Forbidden, errors.IcekeelError)
_POLICY = (
    "default-src 'none'; connect-src 'self'; img-src 'self' data:; script-src 'self' 'unsafe-inline'; "
    "style-src 'self' 'unsafe-inline'; frame-ancestors 'none'"
)
_ASSETS = {
    "swagger-ui-bundle.js": "text/javascript",
    "swagger-ui.css": "text/css",
    "favicon-32x32.png": "image/png",
}

PUBLIC = frozenset({"/docs", "/openapi.json", *(f"/docs/{name}" for name in _ASSETS)})
"""Paths that show nothing of the catalog."""


@router.get(
    "/openapi.json",
    operation_id="openapi",
    responses={**success(200, "This document."), **fails(always=_ALWAYS)},
)
async def openapi(request: Request) -> dict[str, Any]:
    """Show the OpenAPI document."""
    document: dict[str, Any] = request.app.openapi()
    return document


@router.get(
    "/docs",
    operation_id="docs",
    response_class=HTMLResponse,
    responses={**success(200, "A page for people."), **fails(text=True, always=_ALWAYS)},
)
async def docs(request: Request) -> HTMLResponse:
    """Show the documentation of every operation."""
    page = get_swagger_ui_html(
        openapi_url="openapi.json",
        title=f"{request.app.title} API",
        swagger_js_url="docs/swagger-ui-bundle.js",
        swagger_css_url="docs/swagger-ui.css",
        swagger_favicon_url="docs/favicon-32x32.png",
    )
    page.headers["Content-Security-Policy"] = _POLICY
    return page


@router.get("/docs/{asset}", include_in_schema=False)
async def asset(asset: str) -> Answer:
    """A file of Swagger UI."""
    kind = _ASSETS.get(asset)
    if kind is None:
        raise errors.NotFound(f"No such file: {asset}")
    data = files("fastapi_swagger").joinpath("resources", asset).read_bytes()
    return Answer(200, data, [("Cache-Control", "max-age=86400")], content_type=kind)
