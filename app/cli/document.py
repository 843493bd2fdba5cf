"""`icekeel openapi`: the OpenAPI document."""

from __future__ import annotations

import typer

from app.cli.output import as_json
from app.main import openapi_document

app = typer.Typer()


@app.command("openapi")
def openapi() -> None:
    """Print the OpenAPI document."""
    print(as_json(openapi_document()))
