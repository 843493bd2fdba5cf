"""`icekeel openapi`: the OpenAPI document."""

from __future__ import annotations

import argparse

from app.cli.output import as_json
from app.main import openapi_document


def configure(command: argparse.ArgumentParser) -> None:
    command.set_defaults(run=_run)


def _run(given: argparse.Namespace) -> int:
    print(as_json(openapi_document()))
    return 0
