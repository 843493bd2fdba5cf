"""The names of storage options: Iceberg's own, as its Java and Python libraries read them, and two of ours; and which
of them may be shown.

A name that no reader knows would be without effect and without a word, and what it was meant to say (an endpoint, a
key) would be missing: it is refused, with the name that was probably meant.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Final

from app.errors import BadRequest

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

# A password or a signature within a URL.
_CARRIED: Final = re.compile(r":[^@]*@|://[^?#]*[?#]", re.DOTALL)
# Of an encryption key the name that KMS has for it; with another type of encryption it is the key itself.
_ENCRYPTION_KEYS: Final = frozenset({"s3.sse.key", "s3.sse-kms-key-id"})
_KMS: Final = re.compile(r"arn:aws[a-z-]*:kms:.+|alias/.+|mrk-[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def is_secret(option: str, value: str) -> bool:
    """Whether an option's value is kept from clients, answers and logs: whenever it is not known to be public."""
    if option not in _SHOWN and not option.startswith(_OPEN_PUBLIC):
        return True
    if option in _ENCRYPTION_KEYS and _KMS.fullmatch(value) is None:
        return True
    return _CARRIED.search(value) is not None


def check_name(option: str) -> None:
    """BadRequest, with the nearest known name, for an option that nothing reads."""
    if option in _KNOWN or any(option.startswith(family) and len(option) > len(family) for family in _OPEN):
        return
    near = difflib.get_close_matches(option, (*_KNOWN, *_OPEN), n=1, cutoff=0.7)
    known = f"did you mean {near[0]}?" if near else f"known are s3.*, gcs.*, adls.*, client.*, {CLIENT_KEYS}"
    raise BadRequest(f"Unknown storage option: {option!a} ({known})")
