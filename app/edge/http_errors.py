"""Failures that exist only because requests come over HTTP."""

from __future__ import annotations

from app.errors import IcekeelError


class UnsupportedMediaType(IcekeelError):
    """The body is not JSON, or is compressed."""


class RequestTimeout(IcekeelError):
    """The body did not arrive in time; nothing was done."""


class ClientGone(IcekeelError):
    """The connection ended before the whole body was received; nobody reads the answer."""
