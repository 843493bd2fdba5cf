"""The API's documentation as one plain page: no script, nothing loaded from elsewhere."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping
from typing import Any

from starlette.requests import Request

from app import errors
from app.api.operations import Operations, Returns
from app.edge.answer import Answer

routes = Operations("Operations", (errors.Forbidden, errors.IcekeelError))

HTML = "text/html; charset=utf-8"
_POLICY = ("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1f24;background:#fff}
code,pre{font:14px/1.45 ui-monospace,monospace}pre{background:#f3f4f6;padding:.75rem;overflow:auto;white-space:pre-wrap}
details{border:1px solid #d5d9de;border-radius:6px;margin:.4rem 0;padding:.3rem .8rem}summary{cursor:pointer}
summary b{display:inline-block;min-width:4.5rem}
table{border-collapse:collapse}td{padding:.15rem 1rem .15rem 0;vertical-align:top}
@media(prefers-color-scheme:dark){body{color:#e6e8eb;background:#14171a}pre{background:#20252b}details{border-color:#3a414a}}
"""


@routes.declare(
    "GET",
    "/openapi.json",
    "openapi",
    returns=[Returns(200, "This document.", dict[str, Any])],
)
async def openapi(request: Request) -> Answer:
    """Show the OpenAPI document."""
    return Answer(200, json.dumps(request.app.state.document(), ensure_ascii=False).encode("utf-8"))


@routes.declare(
    "GET",
    "/docs",
    "docs",
    returns=[Returns(200, "A page for people.", str, content_type=HTML)],
)
async def docs(request: Request) -> Answer:
    """Show the documentation of every operation."""
    return Answer(200, page(request.app.state.document()).encode("utf-8"), [_POLICY], content_type=HTML)


def page(document: Mapping[str, Any]) -> str:
    """The document as HTML, operations grouped by tag."""
    info = document["info"]
    paragraphs = "".join(f"<p>{_text(part)}</p>" for part in info["description"].strip().split("\n\n"))
    body = "".join(_sections(document))
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{_text(info['title'])} API</title><style>{_STYLE}</style>"
        f"<h1>{_text(info['title'])} {_text(info['version'])}</h1><p>{_text(info['summary'])}</p>{paragraphs}"
        f'<p>Machine-readable: <a href="openapi.json">openapi.json</a></p>{body}</html>'
    )


def _sections(document: Mapping[str, Any]) -> Iterator[str]:
    for tag in document["tags"]:
        yield f"<h2>{_text(tag['name'])}</h2><p>{_text(tag['description'])}</p>"
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                if tag["name"] in operation["tags"]:
                    yield _operation(method, path, operation)
    yield "<h2>Shapes</h2>"
    for name, schema in document["components"]["schemas"].items():
        yield f'<details id="{_text(name)}"><summary><code>{_text(name)}</code></summary>{_json(schema)}</details>'


def _operation(method: str, path: str, operation: Mapping[str, Any]) -> str:
    parts = [f"<p>{_text(operation.get('description', ''))}</p>"]
    if operation.get("parameters"):
        rows = "".join(
            f"<tr><td><code>{_text(p['name'])}</code><td>{_text(p['in'])}<td>{_text(p['description'])}"
            for p in operation["parameters"]
        )
        parts.append(f"<table>{rows}</table>")
    if "requestBody" in operation:
        parts.append(f"<p>Body: {_shape(operation['requestBody'])}</p>")
    rows = "".join(
        f"<tr><td><code>{status}</code><td>{_shape(answer)}<td>{_text(answer['description'])}"
        for status, answer in operation["responses"].items()
    )
    return (
        f"<details><summary><b>{method.upper()}</b> <code>{_text(path)}</code> {_text(operation['summary'])}</summary>"
        f"{''.join(parts)}<table>{rows}</table></details>"
    )


def _shape(part: Mapping[str, Any]) -> str:
    """A link to the shape of a body, if it is a named one."""
    for content in part.get("content", {}).values():
        reference = content["schema"].get("$ref")
        if reference:
            name = _text(reference.rsplit("/", 1)[-1])
            return f'<a href="#{name}"><code>{name}</code></a>'
    return ""


def _json(value: object) -> str:
    return f"<pre>{_text(json.dumps(value, indent=1, ensure_ascii=False))}</pre>"


def _text(value: object) -> str:
    return html.escape(str(value))
