"""Log lines on standard error: text for people, JSON for machines."""

from __future__ import annotations

import json
import logging
import sys
import time


class TextFormatter(logging.Formatter):
    """`2026-01-31T12:00:00.000Z INFO icekeel.access GET /v1/config 200 ms=0.42 request=...`"""

    def format(self, record: logging.LogRecord) -> str:
        fields = getattr(record, "fields", None) or {}
        extra = "".join(f" {name}={value}" for name, value in fields.items())
        line = f"{stamp(record)} {record.levelname} {record.name} {_one_line(record.getMessage())}{extra}"
        return line if not record.exc_info else f"{line}\n{self.formatException(record.exc_info)}"


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "time": stamp(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **(getattr(record, "fields", None) or {}),
        }
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


def stamp(record: logging.LogRecord) -> str:
    """The record's time as UTC with milliseconds."""
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z"


def _one_line(text: str) -> str:
    """Names and paths come from outside; a line end in one must not forge a log line."""
    return text.replace("\r", "\\r").replace("\n", "\\n")


def configure(level: str, form: str) -> None:
    """Send every logger of the process to standard error in the given form."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # uvicorn tells of every start and stop of a process, which the command line says better; httpx of every request.
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio", "alembic", "httpx"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
        logger.setLevel(logging.WARNING)
