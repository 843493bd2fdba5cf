"""The names of storage options: Iceberg's own, as its Java and Python libraries read them, and two of ours.

A name that no reader knows would be without effect and without a word, and what it was meant to say (an endpoint, a
key) would be missing: it is refused, with the name that was probably meant.
"""

from __future__ import annotations

import difflib
from typing import Final

from app.errors import BadRequest

CLIENT_ENDPOINT: Final = "icekeel.client.endpoint"
CLIENT_KEYS: Final = "icekeel.client.keys"

_FAMILIES: Final = {
    "icekeel.client": "endpoint keys",
    "s3": (
        "acceleration-enabled access-grants.enabled access-grants.fallback-to-iam access-key-id acl "
        "analytics-accelerator.enabled anonymous checksum-enabled chunked-encoding-enabled client-factory-impl "
        "connect-timeout cross-region-access-enabled crt.enabled crt.max-concurrency delete-enabled delete.batch-size "
        "delete.num-threads directory-bucket.list-prefix-as-directory dualstack-enabled endpoint "
        "force-virtual-addressing multipart.num-threads multipart.part-size-bytes multipart.threshold "
        "path-style-access preload-client-enabled profile-name proxy-uri region remote-signing-enabled request-timeout "
        "resolve-region retry-strategy-impl retry.max-wait-ms retry.min-wait-ms retry.num-retries role-arn "
        "role-session-name secret-access-key server-side-encryption session-token session-token-expires-at-ms signer "
        "signer.endpoint signer.uri sse-kms-key-id sse.key sse.md5 sse.type staging-dir use-arn-region-enabled "
        "write.namespace-tag-enabled write.storage-class write.table-tag-enabled"
    ),
    "client": (
        "access-key-id assume-role.arn assume-role.external-id assume-role.region assume-role.session-name "
        "assume-role.timeout-sec credentials-provider factory legacy-md5-plugin-enabled profile-name "
        "refresh-credentials-enabled refresh-credentials-endpoint region role-arn role-session-name secret-access-key "
        "session-token"
    ),
    "gcs": (
        "access analytics-core.enabled cache-timeout channel.read.chunk-size-bytes channel.write.chunk-size-bytes "
        "client-lib-token consistency decryption-key default-bucket-location delete.batch-size encryption-key "
        "impersonate.delegates impersonate.lifetime-seconds impersonate.scopes impersonate.service-account no-auth "
        "oauth2.refresh-credentials-enabled oauth2.refresh-credentials-endpoint oauth2.token oauth2.token-expires-at "
        "project-id requester-pays service-account-key service.host session-kwargs user-project version-aware"
    ),
    "adls": (
        "account-host account-key account-name anon auth.shared-key.account.key auth.shared-key.account.name "
        "blob-storage-authority blob-storage-scheme client-id client-secret connection-string credential "
        "dfs-storage-authority dfs-storage-scheme endpoint read.block-size-bytes refresh-credentials-enabled "
        "refresh-credentials-endpoint sas-token tenant-id token token-credential-provider write.block-size-bytes"
    ),
}
_KNOWN: Final = frozenset(
    {"io-impl", *(f"{family}.{name}" for family, names in _FAMILIES.items() for name in names.split())}
)

# What follows is a name of the user's: a bucket, a tag, an account.
_OPEN: Final = (
    "s3.access-points.",
    "s3.analytics-accelerator.",
    "s3.delete.tags.",
    "s3.write.tags.",
    "client.assume-role.tags.",
    "client.credentials-provider.",
    "adls.connection-string.",
    "adls.sas-token.",
    "adls.sas-token-expires-at-ms.",
    "adls.token-credential-provider.",
)


def check_name(option: str) -> None:
    """BadRequest, with the nearest known name, for an option that nothing reads."""
    if option in _KNOWN or any(option.startswith(family) and len(option) > len(family) for family in _OPEN):
        return
    near = difflib.get_close_matches(option, (*_KNOWN, *_OPEN), n=1, cutoff=0.7)
    known = f"did you mean {near[0]}?" if near else f"known are s3.*, gcs.*, adls.*, client.*, {CLIENT_KEYS}"
    raise BadRequest(f"Unknown storage option: {option!a} ({known})")
