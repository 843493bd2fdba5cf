"""A warehouse's storage options, under Iceberg's own property names, turned into those of the client library.

Where no credentials are given, the client takes those of the server's environment: AWS_*, GOOGLE_*, AZURE_* variables,
web identity tokens and instance metadata.

| option | meaning |
|---|---|
| `s3.endpoint` | URL of an S3-compatible server; http:// is allowed, for test and private networks |
| `s3.region` (or `client.region`) | default `us-east-1` when an endpoint is given |
| `s3.path-style-access` | `false` puts the bucket into the host name; default `true` |
| `s3.access-key-id`, `s3.secret-access-key`, `s3.session-token` | static keys |
| `s3.anonymous` | `true`: do not sign |
| `s3.sse.type` (`s3`, `kms`), `s3.sse.key` | server-side encryption of the files that the catalog writes |
| `gcs.oauth2.token`, `gcs.service-account-key`, `gcs.no-auth` | token, key as JSON text, or unsigned |
| `gcs.service.host` | URL of a GCS-compatible server |
| `adls.account-key` (or `adls.auth.shared-key.account.key`), `adls.sas-token`, `adls.token` | one of the three |
| `adls.tenant-id`, `adls.client-id`, `adls.client-secret` | a service principal |
| `adls.account-name`, `adls.endpoint` | where the account's host name in the location does not tell |
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from app.errors import BadRequest
from app.objects.address import Bucket

if TYPE_CHECKING:
    from obstore.store import AzureConfig, ClientConfig, GCSConfig, S3Config

CONNECT_TIMEOUT: Final = timedelta(seconds=5)
REQUEST_TIMEOUT: Final = timedelta(seconds=30)

_ENCRYPTIONS: Final = {"s3": "AES256", "kms": "aws:kms"}


def check_options(options: Mapping[str, str]) -> None:
    """BadRequest for an option that would be silently without effect, or that contradicts another."""
    if "s3.role-arn" in options:
        raise BadRequest(
            "Storage option s3.role-arn is not supported: give s3.access-key-id and s3.secret-access-key, or let the "
            "server's environment assume the role (AWS_ROLE_ARN with AWS_WEB_IDENTITY_TOKEN_FILE)"
        )
    if ("s3.access-key-id" in options) != ("s3.secret-access-key" in options):
        raise BadRequest("Storage options s3.access-key-id and s3.secret-access-key go together")
    if options.get("s3.sse.type", "s3") not in _ENCRYPTIONS:
        raise BadRequest(f"Storage option s3.sse.type is one of {', '.join(_ENCRYPTIONS)}")
    for name in ("s3.endpoint", "gcs.service.host", "adls.endpoint"):
        if name in options and not _is_http_url(options[name]):
            raise BadRequest(f"Storage option {name} must be an http:// or https:// URL, not {options[name]!r}")


def s3_config(bucket: Bucket, options: Mapping[str, str]) -> S3Config:
    # Multi-object delete needs a body checksum that not every S3-compatible server accepts, and files go singly here.
    config: S3Config = {"disable_bulk_delete": True}
    virtual_host = not _flag(options, "s3.path-style-access", default=True)
    endpoint = options.get("s3.endpoint")
    if endpoint is not None:
        config["endpoint"] = _with_bucket(endpoint.rstrip("/"), bucket.name) if virtual_host else endpoint.rstrip("/")
    config["virtual_hosted_style_request"] = virtual_host
    region = options.get("s3.region") or options.get("client.region") or ("us-east-1" if endpoint else None)
    if region is not None:
        config["region"] = region
    if "s3.access-key-id" in options:
        config["access_key_id"] = options["s3.access-key-id"]
        config["secret_access_key"] = options["s3.secret-access-key"]
        # Always set: else a session token of the server's environment is paired with these keys and everything fails.
        config["session_token"] = options.get("s3.session-token", "")
    elif _flag(options, "s3.anonymous", default=False):
        config["skip_signature"] = True
    if "s3.sse.type" in options:
        config["server_side_encryption"] = _ENCRYPTIONS[options["s3.sse.type"]]
        if "s3.sse.key" in options:
            config["sse_kms_key_id"] = options["s3.sse.key"]
    return config


def gcs_config(options: Mapping[str, str]) -> GCSConfig:
    config: GCSConfig = {}
    if "gcs.service-account-key" in options:
        config["service_account_key"] = options["gcs.service-account-key"]
    elif "gcs.oauth2.token" in options:
        config["bearer_token"] = options["gcs.oauth2.token"]
    elif _flag(options, "gcs.no-auth", default=False):
        config["skip_signature"] = True
    if "gcs.service.host" in options:
        config["base_url"] = options["gcs.service.host"].rstrip("/")
    return config


def adls_config(bucket: Bucket, options: Mapping[str, str]) -> AzureConfig:
    account = (
        options.get("adls.account-name")
        or options.get("adls.auth.shared-key.account.name")
        or bucket.host.partition(".")[0]
    )
    config: AzureConfig = {"account_name": account}
    key = options.get("adls.account-key") or options.get("adls.auth.shared-key.account.key")
    sas = options.get(f"adls.sas-token.{bucket.host}") or options.get("adls.sas-token")
    if key:
        config["account_key"] = key
    elif sas:
        config["sas_key"] = sas
    elif "adls.token" in options:
        config["token"] = options["adls.token"]
    elif "adls.client-id" in options:
        config["client_id"] = options["adls.client-id"]
        config["client_secret"] = options.get("adls.client-secret", "")
        config["tenant_id"] = options.get("adls.tenant-id", "")
    if "adls.endpoint" in options:
        config["endpoint"] = options["adls.endpoint"].rstrip("/")
    return config


def client_config(endpoint: str | None) -> ClientConfig:
    options: ClientConfig = {"connect_timeout": CONNECT_TIMEOUT, "timeout": REQUEST_TIMEOUT, "user_agent": "icekeel"}
    if endpoint is not None and endpoint.startswith("http://"):
        options["allow_http"] = True
    return options


def _with_bucket(endpoint: str, bucket: str) -> str:
    scheme, _, rest = endpoint.partition("://")
    return f"{scheme}://{bucket}.{rest}"


def _flag(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    value = options.get(name)
    return default if value is None else value.strip().lower() == "true"


def _is_http_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc)
