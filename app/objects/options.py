"""A warehouse's storage options, under Iceberg's own property names, turned into those of the client library.

Where no credentials are given, the client takes those of the server's environment: AWS_*, GOOGLE_*, AZURE_* variables,
web identity tokens and instance metadata. It does so for the clouds themselves and for endpoints that the operator
allowed: another endpoint must be public, be reached over TLS, and come with credentials of its own.

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

import json
import re
from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Final
from urllib.request import getproxies

from app.errors import BadRequest, Forbidden
from app.objects.address import Bucket, Kind
from app.spec import endpoint as endpoints

if TYPE_CHECKING:
    from obstore.store import AzureConfig, AzureCredential, ClientConfig, GCSConfig, S3Config

CONNECT_TIMEOUT: Final = timedelta(seconds=5)
REQUEST_TIMEOUT: Final = timedelta(seconds=30)

ENDPOINTS: Final[Mapping[Kind, str]] = {"s3": "s3.endpoint", "gcs": "gcs.service.host", "adls": "adls.endpoint"}

_ENCRYPTIONS: Final = {"s3": "AES256", "kms": "aws:kms"}
# These become parts of host names.
_HOST_PARTS: Final = ("s3.region", "client.region", "adls.account-name", "adls.auth.shared-key.account.name")
_LABEL: Final = re.compile(r"[A-Za-z0-9-]{1,63}")
_NOWHERE: Final = "http://127.0.0.1:0"


def check_options(options: Mapping[str, str], allowed_endpoints: Collection[str] = ()) -> None:
    """BadRequest for an option that would be silently without effect, or that contradicts another.

    Forbidden for an endpoint whose origin is not among `allowed_endpoints` and that is not public, or that would be
    sent the credentials of the server's environment.
    """
    if "s3.role-arn" in options:
        raise BadRequest(
            "Storage option s3.role-arn is not supported: give s3.access-key-id and s3.secret-access-key, or let the "
            "server's environment assume the role (AWS_ROLE_ARN with AWS_WEB_IDENTITY_TOKEN_FILE)"
        )
    if ("s3.access-key-id" in options) != ("s3.secret-access-key" in options):
        raise BadRequest("Storage options s3.access-key-id and s3.secret-access-key go together")
    if options.get("s3.sse.type", "s3") not in _ENCRYPTIONS:
        raise BadRequest(f"Storage option s3.sse.type is one of {', '.join(_ENCRYPTIONS)}")
    for name in _HOST_PARTS:
        if name in options and not _LABEL.fullmatch(options[name]):
            raise BadRequest(f"Storage option {name} holds letters, digits and hyphens only")
    _check_service_account(options)
    for kind, name in ENDPOINTS.items():
        if name in options:
            _check_endpoint(kind, options, allowed_endpoints)


def _check_endpoint(kind: Kind, options: Mapping[str, str], allowed: Collection[str]) -> None:
    name = ENDPOINTS[kind]
    try:
        origin = endpoints.origin(options[name])
    except BadRequest as fault:
        raise BadRequest(f"Storage option {name} {fault.message}") from None
    if origin in allowed:
        return
    way_out = f"or have the operator add {origin} to ICEKEEL_ALLOWED_ENDPOINTS"
    if not endpoints.is_public(options[name]):
        raise Forbidden(
            f"Storage option {name} may not send the server to {origin}, which is not https:// or lies inside its own "
            f"network. Give a public https:// endpoint, {way_out}"
        )
    if not brings_credentials(kind, options):
        raise Forbidden(
            f"Storage option {name} would send the credentials of the server's environment to {origin}. Give the "
            f"warehouse static keys or a token of its own, {way_out}"
        )


def _check_service_account(options: Mapping[str, str]) -> None:
    """A key file may name a server of its own, which no endpoint option shows."""
    try:
        key = json.loads(options.get("gcs.service-account-key", "{}"))
    except (ValueError, RecursionError):
        key = None
    if not isinstance(key, dict):
        raise BadRequest("Storage option gcs.service-account-key must be a key file's JSON object")
    if "gcs_base_url" in key:
        raise BadRequest("Storage option gcs.service-account-key must not hold gcs_base_url: set gcs.service.host")


def brings_credentials(kind: Kind, options: Mapping[str, str]) -> bool:
    """Whether requests carry credentials of the options, or none: never those of the server's environment.

    The client library lets tokens of the environment pass before service accounts and service principals.
    """
    if kind == "s3":
        return "s3.access-key-id" in options or _flag(options, "s3.anonymous", default=False)
    if kind == "gcs":
        own = "gcs.oauth2.token" in options or _flag(options, "gcs.no-auth", default=False)
        return own and "gcs.service-account-key" not in options
    names = ("adls.account-key", "adls.auth.shared-key.account.key", "adls.sas-token", "adls.token")
    return any(options.get(name) for name in names)


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
    if adls_credential(bucket, options) is None and "adls.client-id" in options:
        config["client_id"] = options["adls.client-id"]
        config["client_secret"] = options.get("adls.client-secret", "")
        config["tenant_id"] = options.get("adls.tenant-id", "")
    if "adls.endpoint" in options:
        config["endpoint"] = options["adls.endpoint"].rstrip("/")
    return config


def adls_credential(bucket: Bucket, options: Mapping[str, str]) -> AzureCredential | None:
    """The key or token of the options. Apart from the configuration, where a token of the environment goes first."""
    key = options.get("adls.account-key") or options.get("adls.auth.shared-key.account.key")
    if key:
        return {"access_key": key, "expires_at": None}
    sas = options.get(f"adls.sas-token.{bucket.host}") or options.get("adls.sas-token")
    if sas:
        return {"sas_token": sas.lstrip("?"), "expires_at": None}
    token = options.get("adls.token")
    return {"token": token, "expires_at": None} if token else None


def client_config(kind: Kind, options: Mapping[str, str]) -> ClientConfig:
    config: ClientConfig = {"connect_timeout": CONNECT_TIMEOUT, "timeout": REQUEST_TIMEOUT, "user_agent": "icekeel"}
    endpoint = options.get(ENDPOINTS[kind])
    if endpoint is None:
        return config
    if endpoint.lower().startswith("http://"):
        config["allow_http"] = True
    if brings_credentials(kind, options) and not getproxies().keys() & {"http", "https", "all"}:
        # The client follows redirects and takes S3's session token along. Whatever is not the endpoint's own host goes
        # to a proxy that cannot be. Credentials of the environment are asked for elsewhere, so these go without.
        config["proxy_url"] = _NOWHERE
        config["proxy_excludes"] = endpoints.host(endpoint)
    return config


def _with_bucket(endpoint: str, bucket: str) -> str:
    scheme, _, rest = endpoint.partition("://")
    return f"{scheme}://{bucket}.{rest}"


def _flag(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    value = options.get(name)
    return default if value is None else value.strip().lower() == "true"
