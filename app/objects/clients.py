"""Clients of S3, GCS and ADLS. Their library takes 5 MB, so a server on local files leaves this module alone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from obstore.store import AzureStore, GCSStore, S3Store

from app.objects.address import Bucket
from app.objects.options import adls_config, adls_credential, client_config, gcs_config, s3_config

if TYPE_CHECKING:
    from obstore.store import RetryConfig

Client = S3Store | GCSStore | AzureStore

RETRY_TIMEOUT: Final = timedelta(seconds=30)
RETRIES: Final = 4


def open_client(bucket: Bucket, options: Mapping[str, str], *, retries: int = RETRIES) -> Client:
    """A client for one bucket. `retries` counts what the client does by itself on errors that may pass."""
    retry: RetryConfig = {"max_retries": retries, "retry_timeout": RETRY_TIMEOUT}
    if bucket.kind == "s3":
        return S3Store(
            bucket.name,
            config=s3_config(bucket, options),
            client_options=client_config(bucket.kind, options),
            retry_config=retry,
        )
    if bucket.kind == "gcs":
        return GCSStore(
            bucket.name,
            config=gcs_config(options),
            client_options=client_config(bucket.kind, options),
            retry_config=retry,
        )
    credential = adls_credential(bucket, options)
    return AzureStore(
        bucket.name,
        config=adls_config(bucket, options),
        client_options=client_config(bucket.kind, options),
        retry_config=retry,
        credential_provider=None if credential is None else lambda: credential,
    )
