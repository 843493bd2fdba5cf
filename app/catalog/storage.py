"""Storage profiles of warehouses: which options there are, which are secret, what of them clients are told,
and when a change needs the secrets again. Where a warehouse lies is not decided here.

Beside Iceberg's own property names (`s3.*`, `gcs.*`, `adls.*`, `client.*`, `io-impl`) a profile has two options of
ours:

| option | meaning |
|---|---|
| `icekeel.client.endpoint` | `true` (default): clients get the server's own endpoint; `false`: none; or that URL |
| `icekeel.client.keys` | `true`: every client that may load a table gets the static keys; default `false` |
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Final

import msgspec

from app.errors import BadRequest
from app.iceberg import location as locations
from app.iceberg.endpoint import origin
from app.ports import Warehouse

CLIENT_ENDPOINT: Final = "icekeel.client.endpoint"
CLIENT_KEYS: Final = "icekeel.client.keys"

# What may be shown to whoever asks. Every other option is a secret, one that is new here as well.
_PUBLIC: Final = {
    "icekeel.client": "endpoint keys",
    "s3": (
        "acceleration-enabled access-grants.enabled access-grants.fallback-to-iam acl analytics-accelerator.enabled "
        "anonymous checksum-enabled chunked-encoding-enabled client-factory-impl connect-timeout "
        "cross-region-access-enabled crt.enabled crt.max-concurrency delete-enabled delete.batch-size "
        "delete.num-threads directory-bucket.list-prefix-as-directory dualstack-enabled endpoint "
        "force-virtual-addressing multipart.num-threads multipart.part-size-bytes multipart.threshold "
        "path-style-access preload-client-enabled profile-name proxy-uri region remote-signing-enabled request-timeout "
        "resolve-region retry-strategy-impl retry.max-wait-ms retry.min-wait-ms retry.num-retries role-arn "
        "role-session-name server-side-encryption signer signer.endpoint signer.uri sse-kms-key-id sse.key sse.type "
        "staging-dir use-arn-region-enabled write.namespace-tag-enabled write.storage-class write.table-tag-enabled"
    ),
    "client": (
        "assume-role.arn assume-role.region assume-role.session-name assume-role.timeout-sec credentials-provider "
        "factory legacy-md5-plugin-enabled profile-name refresh-credentials-enabled refresh-credentials-endpoint "
        "region role-arn role-session-name"
    ),
    "gcs": (
        "access analytics-core.enabled cache-timeout channel.read.chunk-size-bytes channel.write.chunk-size-bytes "
        "consistency default-bucket-location delete.batch-size impersonate.delegates impersonate.lifetime-seconds "
        "impersonate.scopes impersonate.service-account no-auth oauth2.refresh-credentials-enabled "
        "oauth2.refresh-credentials-endpoint project-id requester-pays service.host user-project version-aware"
    ),
    "adls": (
        "account-host account-name anon auth.shared-key.account.name blob-storage-authority blob-storage-scheme "
        "client-id dfs-storage-authority dfs-storage-scheme endpoint read.block-size-bytes "
        "refresh-credentials-enabled refresh-credentials-endpoint tenant-id write.block-size-bytes"
    ),
}
_SECRET: Final = {
    "s3": "access-key-id secret-access-key session-token session-token-expires-at-ms sse.md5",
    "client": "access-key-id assume-role.external-id secret-access-key session-token",
    "gcs": (
        "client-lib-token decryption-key encryption-key oauth2.token oauth2.token-expires-at service-account-key "
        "session-kwargs"
    ),
    "adls": (
        "account-key auth.shared-key.account.key client-secret connection-string credential sas-token token "
        "token-credential-provider"
    ),
}

# What follows is a name of the user's: a bucket, a tag, an account.
_OPEN_PUBLIC: Final = (
    "s3.access-points.",
    "s3.analytics-accelerator.",
    "s3.delete.tags.",
    "s3.write.tags.",
    "client.assume-role.tags.",
)
_OPEN_SECRET: Final = (
    "client.credentials-provider.",
    "adls.connection-string.",
    "adls.sas-token.",
    "adls.sas-token-expires-at-ms.",
    "adls.token-credential-provider.",
)
_OPEN: Final = (*_OPEN_PUBLIC, *_OPEN_SECRET)


def _names(families: Mapping[str, str]) -> frozenset[str]:
    return frozenset(f"{family}.{name}" for family, names in families.items() for name in names.split())


_SHOWN: Final = _names(_PUBLIC) | {"io-impl"}
_KNOWN: Final = _SHOWN | _names(_SECRET)

# Of an encryption key the name that KMS has for it; with another type of encryption it is the key itself.
_ENCRYPTION_KEYS: Final = frozenset({"s3.sse.key", "s3.sse-kms-key-id"})
_KMS: Final = re.compile(r"arn:aws[a-z-]*:kms:.+|alias/.+|mrk-[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def is_secret(option: str, value: str) -> bool:
    """Whether an option's value is kept from clients, answers and logs: whenever it is not known to be public."""
    if option not in _SHOWN and not option.startswith(_OPEN_PUBLIC):
        return True
    if option in _ENCRYPTION_KEYS and _KMS.fullmatch(value) is None:
        return True
    return _carries_secret(value)


def _carries_secret(text: str) -> bool:
    """Whether a text may be a URL with a password or a signature in it."""
    _, colon, behind = text.partition(":")
    _, scheme, rest = text.partition("://")
    return (bool(colon) and "@" in behind) or (bool(scheme) and ("?" in rest or "#" in rest))


def check_name(option: str) -> None:
    """BadRequest, with the nearest known name, for an option that nothing reads."""
    if option in _KNOWN or any(option.startswith(family) and len(option) > len(family) for family in _OPEN):
        return
    near = difflib.get_close_matches(option, (*_KNOWN, *_OPEN), n=1, cutoff=0.7)
    known = f"did you mean {near[0]}?" if near else f"known are s3.*, gcs.*, adls.*, client.*, {CLIENT_KEYS}"
    raise BadRequest(f"Unknown storage option: {option!a} ({known})")


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


# Options that say how the store is used, not where it is or by whose word. Every other change needs the secrets.
_HARMLESS_NAMES: Final = (
    "s3.acl s3.anonymous s3.checksum-enabled s3.chunked-encoding-enabled s3.connect-timeout s3.crt.enabled "
    "s3.crt.max-concurrency s3.delete-enabled s3.delete.batch-size s3.delete.num-threads s3.multipart.num-threads "
    "s3.multipart.part-size-bytes s3.multipart.threshold s3.path-style-access s3.preload-client-enabled s3.region "
    "s3.request-timeout s3.retry.max-wait-ms s3.retry.min-wait-ms s3.retry.num-retries s3.server-side-encryption "
    "s3.sse-kms-key-id s3.sse.key s3.sse.type s3.staging-dir s3.write.namespace-tag-enabled s3.write.storage-class "
    "s3.write.table-tag-enabled client.region gcs.channel.read.chunk-size-bytes gcs.channel.write.chunk-size-bytes "
    "gcs.default-bucket-location gcs.delete.batch-size gcs.no-auth gcs.project-id gcs.user-project "
    "adls.read.block-size-bytes adls.write.block-size-bytes"
)
_HARMLESS: Final = frozenset(_HARMLESS_NAMES.split())
_HARMLESS_PREFIXES: Final = ("s3.delete.tags.", "s3.write.tags.")
_FAMILIES: Final = {"s3": ("s3.", "client."), "client": ("s3.", "client."), "gcs": ("gcs.",), "adls": ("adls.",)}


# Whoever may change a warehouse may not thereby learn what it keeps to itself: not by an endpoint that is theirs, nor
# by an account of the cloud that is theirs, nor by having the keys handed out.
def at_stake(before: Warehouse, after: Warehouse) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What of the change decides about secrets, and the names of the secrets of `before` that it decides about.

    What decides are names of options, and Azure accounts that the warehouse did not use.
    """
    reasons: list[str] = []
    secrets: set[str] = set()
    for name in sorted(before.storage.keys() | after.storage.keys()):
        if before.storage.get(name) != after.storage.get(name) and not _is_harmless(name, after):
            reasons.append(name)
            secrets.update(_of_family(before, name.partition(".")[0]))
    for account in sorted(_accounts(after) - _accounts(before)):
        reasons.append(account)
        secrets.update(_of_family(before, "adls"))
    return tuple(reasons), tuple(sorted(secrets))


def _is_harmless(name: str, after: Warehouse) -> bool:
    if name == CLIENT_KEYS:
        return not hands_out_keys(after)
    if name == CLIENT_ENDPOINT:
        return not hands_out_keys(after) or after.storage.get(name, "true") in ("true", "false")
    return name in _HARMLESS or name.startswith(_HARMLESS_PREFIXES)


def _of_family(warehouse: Warehouse, family: str) -> list[str]:
    prefixes = _FAMILIES.get(family, ("",))
    return [name for name in warehouse.secrets if name.startswith(prefixes)]


def _accounts(warehouse: Warehouse) -> set[str]:
    """The hosts of Azure accounts among the places."""
    authorities = (
        locations.canonical(place).partition("://")[2].partition("/")[0]
        for place in (warehouse.location, *warehouse.allowed_locations)
        if locations.scheme(place).startswith(("abfs", "wasb"))
    )
    return {authority.partition("@")[2] for authority in authorities}
