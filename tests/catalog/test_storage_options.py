"""Which storage options there are, and which of them may be shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.catalog.storage_options import is_secret


@pytest.mark.parametrize(
    "option",
    [
        "s3.access-key-id", "s3.secret-access-key", "s3.session-token", "s3.sse.md5", "client.secret-access-key",
        "client.access-key-id", "client.assume-role.external-id", "client.credentials-provider.x", "gcs.oauth2.token",
        "gcs.service-account-key", "gcs.encryption-key", "gcs.decryption-key", "gcs.session-kwargs",
        "adls.credential", "adls.token", "adls.client-secret", "adls.account-key", "adls.sas-token",
        "adls.sas-token.acc.dfs.core.windows.net", "adls.connection-string", "adls.connection-string.acc",
        "adls.auth.shared-key.account.key", "adls.token-credential-provider.x",
    ],
)  # fmt: skip
def test_secrets_are_secret(option: str) -> None:
    """By every name that a library has for one."""
    assert is_secret(option, "x")


@given(st.text(max_size=40))
def test_what_is_not_known_is_secret(option: str) -> None:
    """An option of a later version of some library is not shown because nobody thought of it."""
    assert is_secret(f"s3.new-{option}", "x") and is_secret(f"adls.{option}.new", "x")


@pytest.mark.parametrize(
    "value",
    ["http://user:pw@proxy:3128", "https://:pw@h", "user:pw@proxy:3128", "https://h/?sig=x", "https://h/#token"],
)
@pytest.mark.parametrize("option", ["s3.proxy-uri", "s3.signer.uri", "s3.endpoint", "s3.access-points.b"])
def test_a_password_in_a_value_makes_it_secret(option: str, value: str) -> None:
    """Whatever the option: user and password, or a query that may be a signature."""
    assert is_secret(option, value)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("s3.endpoint", "https://store.example:9000/path"),
        ("s3.region", "eu-west-1"),
        ("s3.role-arn", "arn:aws:iam::1:role/x"),
        ("gcs.impersonate.service-account", "sa@project.iam.gserviceaccount.com"),
        ("s3.write.tags.team", "a"),
        ("icekeel.client.keys", "true"),
        ("io-impl", "org.apache.iceberg.aws.s3.S3FileIO"),
    ],
)
def test_what_clients_need_to_know_is_public(option: str, value: str) -> None:
    """Where the files are and how to read them."""
    assert not is_secret(option, value)


def test_an_encryption_key_is_public_by_the_name_that_kms_has_for_it() -> None:
    """With another type of encryption the same option holds the key itself."""
    assert not is_secret("s3.sse.key", "arn:aws:kms:eu-west-1:1:key/x") and not is_secret("s3.sse.key", "alias/lake")
    assert is_secret("s3.sse.key", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=")
