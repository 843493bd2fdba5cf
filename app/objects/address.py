"""Where an object lies in a cloud: which kind of store, which bucket, which key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from app.errors import BadRequest
from app.spec.location import is_plain_authority

Kind = Literal["s3", "gcs", "adls"]

_KINDS: Final[dict[str, Kind]] = {
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "gs": "gcs",
    "gcs": "gcs",
    "abfs": "adls",
    "abfss": "adls",
    "wasb": "adls",
    "wasbs": "adls",
}


@dataclass(frozen=True, slots=True)
class Bucket:
    """`name` is a bucket or Azure container; `host` is the Azure account's host name, else empty."""

    kind: Kind
    name: str
    host: str = ""


@dataclass(frozen=True, slots=True)
class Address:
    bucket: Bucket
    key: str


def parse_address(location: str) -> Address:
    """Split a URI such as `s3://bucket/key` or `abfss://container@account.dfs.core.windows.net/key`.

    The key is taken literally, as Iceberg's own file IO does: no percent-decoding, and `?` and `#` belong to it.
    BadRequest for a scheme that no adapter serves, or where bucket or account are missing.
    """
    scheme, separator, rest = location.partition("://")
    kind = _KINDS.get(scheme.lower()) if separator else None
    if kind is None:
        known = ", ".join(["file", *_KINDS])
        raise BadRequest(f"Unsupported location (schemes: {known}): {location}", location=location)
    authority, _, key = rest.partition("/")
    if authority and not is_plain_authority(authority):
        raise BadRequest(f"Location names no bucket that could be: {location}", location=location)
    if kind == "adls":
        name, at, host = authority.partition("@")
        if not (name and at and host):
            raise BadRequest(f"An Azure location is abfss://container@account-host/path: {location}", location=location)
        return Address(Bucket(kind, name, host), key)
    if not authority:
        raise BadRequest(f"Location names no bucket: {location}", location=location)
    return Address(Bucket(kind, authority), key)
