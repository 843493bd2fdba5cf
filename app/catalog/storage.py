"""Storage profiles of warehouses: which options there are, which are secret, and what of them clients are told.

Beside Iceberg's own property names (`s3.*`, `gcs.*`, `adls.*`, `client.*`, `io-impl`) a profile has two options of
ours:

| option | meaning |
|---|---|
| `icekeel.client.endpoint` | `true` (default): clients get the server's own endpoint; `false`: none; or that URL |
| `icekeel.client.keys` | `true`: every client that may load a table gets the static keys; default `false` |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from app.catalog.storage_options import CLIENT_ENDPOINT, CLIENT_KEYS, check_name, is_secret
from app.errors import BadRequest
from app.iceberg import location as locations
from app.iceberg.endpoint import origin
from app.ports import Warehouse

# Options that a client's own FileIO understands; everything else is the server's business.
_CLIENT_OPTIONS: Final = ("s3.", "client.", "gcs.", "adls.", "io-impl")

_ENDPOINTS: Final = {
    "s3": "s3.endpoint",
    "gs": "gcs.service.host",
    "gcs": "gcs.service.host",
    "abfs": "adls.endpoint",
    "wasb": "adls.endpoint",
}
ENDPOINT_OPTIONS: Final = frozenset(_ENDPOINTS.values())
_SCHEMES: Final = ("file", "s3", "s3a", "s3n", "gs", "gcs", "abfs", "abfss", "wasb", "wasbs")
_REGION_OF_ENDPOINTS: Final = "us-east-1"

# Static keys that may be handed out, each under every name by which some engine looks for it.
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "s3.access-key-id": ("s3.access-key-id",),
    "s3.secret-access-key": ("s3.secret-access-key",),
    "s3.session-token": ("s3.session-token",),
    "gcs.oauth2.token": ("gcs.oauth2.token",),
    "adls.account-key": ("adls.account-key", "adls.auth.shared-key.account.key"),
    "adls.auth.shared-key.account.key": ("adls.account-key", "adls.auth.shared-key.account.key"),
    "adls.sas-token": ("adls.sas-token",),
}
# They go with an Azure key, likewise under both names.
_ACCOUNT_NAMES: Final = ("adls.auth.shared-key.account.name", "adls.account-name")
_SAS_OF_ACCOUNT: Final = "adls.sas-token."


def split(options: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Options that may be shown, and secrets."""
    shown = {name: value for name, value in options.items() if not is_secret(name, value)}
    return shown, {name: value for name, value in options.items() if name not in shown}


def sorted_out(warehouse: Warehouse) -> Warehouse:
    """The warehouse with its secrets apart, whatever was thought to be public when it was stored."""
    shown, secret = split(warehouse.storage)
    if not secret:
        return warehouse
    return msgspec.structs.replace(warehouse, storage=shown, secrets={**secret, **warehouse.secrets})


def check(warehouse: Warehouse) -> None:
    """BadRequest for a place that no store serves, an option that nothing reads, or a value that means nothing."""
    for place in (warehouse.location, *warehouse.allowed_locations):
        check_place(place)
    for name in (*warehouse.storage, *warehouse.secrets):
        check_name(name)
    _check_client_endpoint({**warehouse.storage, **warehouse.secrets}.get(CLIENT_ENDPOINT, "true"))
    if warehouse.storage.get(CLIENT_KEYS, "false") not in ("true", "false"):
        raise BadRequest(f"Storage option {CLIENT_KEYS} is true or false")
    if hands_out_keys(warehouse) and not _keys(warehouse):
        raise BadRequest(f"Warehouse {warehouse.name} has no static keys that {CLIENT_KEYS} could hand out")


def _check_client_endpoint(chosen: str) -> None:
    if chosen in ("true", "false"):
        return
    try:
        origin(chosen)
    except BadRequest as fault:
        raise BadRequest(f"Storage option {CLIENT_ENDPOINT} is true, false or a URL, which {fault.message}") from None


def check_place(place: str) -> None:
    """BadRequest unless `place` is an absolute location, of a plain form, of a scheme that some store serves."""
    canonical = locations.canonical(place)
    if locations.scheme(place) not in _SCHEMES:
        raise BadRequest(f"Unsupported location (schemes: {', '.join(_SCHEMES)}): {place}")
    authority = canonical.partition("://")[2].partition("/")[0]
    bucket, at, account = authority.partition("@")
    if not locations.scheme(place).startswith(("abfs", "wasb")):
        if at:
            raise BadRequest("Invalid location: keys belong into the storage options, not before the name of a bucket")
    elif not (bucket and at and account):
        raise BadRequest(f"An Azure location is abfss://container@account-host/path: {place}")
    if not (locations.is_local(place) or locations.is_plain_authority(authority)):
        raise BadRequest(f"Invalid location: a bucket's name holds letters, digits, dots, _ and - only: {place}")


def hands_out_keys(warehouse: Warehouse) -> bool:
    return warehouse.storage.get(CLIENT_KEYS) == "true"


def told(warehouse: Warehouse) -> dict[str, str]:
    """What every client needs to find the warehouse's files: endpoint, region, style. Never a secret."""
    config = {name: value for name, value in warehouse.storage.items() if name.startswith(_CLIENT_OPTIONS)}
    region = config.get("s3.region") or config.get("client.region")
    if region is None and "s3.endpoint" in config:
        region = _REGION_OF_ENDPOINTS
    _set_endpoint(warehouse, config)
    if region is not None:
        # Java reads the second name, DuckDB and others the first.
        config["s3.region"] = config["client.region"] = region
    if "s3.endpoint" in config:
        config.setdefault("s3.path-style-access", "true")
    return config


def handed(warehouse: Warehouse) -> dict[str, str]:
    """What is sent along with a table: static keys and what goes with them where the warehouse opted in, else nothing.

    The catalog's configuration has told the rest already, and there a client's own settings win. With a table, options
    without keys take the place of what the client has: DuckDB makes a secret of them that hides the user's.
    """
    return {**told(warehouse), **_keys(warehouse)} if hands_out_keys(warehouse) else {}


def _set_endpoint(warehouse: Warehouse, config: dict[str, str]) -> None:
    chosen = warehouse.storage.get(CLIENT_ENDPOINT, "true")
    if chosen == "true":
        return
    for name in _ENDPOINTS.values():
        config.pop(name, None)
    name = _ENDPOINTS.get(_family(warehouse.location), "")
    if chosen != "false" and name:
        config[name] = chosen


def _family(location: str) -> str:
    scheme = locations.scheme(location)
    return next((family for family in _ENDPOINTS if scheme.startswith(family)), scheme)


def _keys(warehouse: Warehouse) -> dict[str, str]:
    found = {name: warehouse.secrets[key] for key, names in _KEYS.items() if key in warehouse.secrets for name in names}
    found.update((name, value) for name, value in warehouse.secrets.items() if name.startswith(_SAS_OF_ACCOUNT))
    account = next((warehouse.storage[name] for name in _ACCOUNT_NAMES if name in warehouse.storage), None)
    if found and account is not None:
        found.update(dict.fromkeys(_ACCOUNT_NAMES, account))
    return found
