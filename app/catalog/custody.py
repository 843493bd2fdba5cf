"""When a change of a warehouse needs its secrets again: whenever it decides where they go, or who gets them.

Whoever may change a warehouse may not thereby learn what it keeps to itself. Not by an endpoint that is theirs, nor by
an account of the cloud that is theirs, nor by having the keys handed out.
"""

from __future__ import annotations

from typing import Final

from app.catalog import storage
from app.catalog.storage_options import CLIENT_ENDPOINT, CLIENT_KEYS
from app.ports import Warehouse
from app.spec import location as locations

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
        return not storage.hands_out_keys(after)
    if name == CLIENT_ENDPOINT:
        return not storage.hands_out_keys(after) or after.storage.get(name, "true") in ("true", "false")
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
