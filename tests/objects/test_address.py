"""Splitting cloud locations."""

from __future__ import annotations

import pytest

from app.errors import BadRequest
from app.objects.address import Address, Bucket, parse_address


@pytest.mark.parametrize(
    ("location", "address"),
    [
        ("s3://b/k/x.json", Address(Bucket("s3", "b"), "k/x.json")),
        ("s3a://b/k", Address(Bucket("s3", "b"), "k")),
        ("S3N://b/k", Address(Bucket("s3", "b"), "k")),
        ("s3://b", Address(Bucket("s3", "b"), "")),
        ("gs://b/a%20b", Address(Bucket("gcs", "b"), "a%20b")),
        ("abfss://c@acc.dfs.core.windows.net/k", Address(Bucket("adls", "c", "acc.dfs.core.windows.net"), "k")),
        ("wasbs://c@acc.blob.core.windows.net/k", Address(Bucket("adls", "c", "acc.blob.core.windows.net"), "k")),
    ],
)
def test_a_location_names_store_bucket_and_key(location: str, address: Address) -> None:
    """Scheme families fall together and the key is taken as it stands."""
    assert parse_address(location) == address


@pytest.mark.parametrize(
    "location", ["hdfs://n/k", "s3:/b/k", "s3:///k", "abfss://container/k", "abfss://@host/k", "k", "", "http://h/k"]
)
def test_what_names_no_place_is_refused(location: str) -> None:
    """A scheme without an adapter, no bucket, or no account is a BadRequest."""
    with pytest.raises(BadRequest):
        parse_address(location)
