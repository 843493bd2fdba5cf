"""Clients of object stores."""

from __future__ import annotations

import pytest

from app.objects.address import Bucket
from app.objects.clients import open_client

S3 = Bucket("s3", "lake")
ADLS = Bucket("adls", "lake", "acme.dfs.core.windows.net")


@pytest.mark.parametrize(
    ("bucket", "options"),
    [
        (S3, {"s3.endpoint": "http://127.0.0.1:1", "s3.access-key-id": "a", "s3.secret-access-key": "b"}),
        (S3, {"s3.anonymous": "true", "s3.region": "eu-west-1", "s3.sse.type": "kms", "s3.sse.key": "k"}),
        (Bucket("gcs", "lake"), {"gcs.no-auth": "true", "gcs.service.host": "http://127.0.0.1:1"}),
        (Bucket("gcs", "lake"), {"gcs.oauth2.token": "t"}),
        (ADLS, {"adls.account-key": "a2V5", "adls.endpoint": "http://127.0.0.1:1/acme"}),
        (ADLS, {"adls.sas-token": "sv=1&sig=2"}),
        (ADLS, {"adls.token": "t"}),
        (ADLS, {"adls.client-id": "i", "adls.client-secret": "s", "adls.tenant-id": "t"}),
    ],
)
def test_the_client_library_accepts_every_option(bucket: Bucket, options: dict[str, str]) -> None:
    """Every setting these options turn into is one that the client library knows; nothing is contacted."""
    open_client(bucket, options)
