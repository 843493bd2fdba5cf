"""Storage options, from Iceberg's property names to client settings."""

from __future__ import annotations

import pytest

from app.errors import BadRequest, Forbidden
from app.objects.address import Bucket
from app.objects.options import adls_config, adls_credential, check_options, gcs_config, s3_config

S3 = Bucket("s3", "lake")
ADLS = Bucket("adls", "lake", "acme.dfs.core.windows.net")


def test_an_s3_endpoint_is_addressed_by_path_by_default() -> None:
    """An S3-compatible server needs no DNS entry per bucket, and has a region even when nobody names one."""
    config = s3_config(S3, {"s3.endpoint": "http://127.0.0.1:9000/"})
    assert config["endpoint"] == "http://127.0.0.1:9000"
    assert config["virtual_hosted_style_request"] is False
    assert config["region"] == "us-east-1"


def test_without_path_style_the_bucket_is_in_the_host_name() -> None:
    """`s3.path-style-access=false` asks https://bucket.host."""
    config = s3_config(S3, {"s3.endpoint": "https://s3.example", "s3.path-style-access": "false"})
    assert config["endpoint"] == "https://lake.s3.example"
    assert config["virtual_hosted_style_request"] is True


def test_static_keys_never_mix_with_the_servers_session_token() -> None:
    """With keys given, the session token is the given one or none, whatever the environment holds."""
    keys = {"s3.access-key-id": "id", "s3.secret-access-key": "secret"}
    assert s3_config(S3, keys)["session_token"] == ""
    assert s3_config(S3, {**keys, "s3.session-token": "token"})["session_token"] == "token"


def test_without_keys_the_environment_decides() -> None:
    """No credential option: none is set, so the client library looks at the environment."""
    config = s3_config(S3, {"client.region": "eu-central-1"})
    assert config == {"disable_bulk_delete": True, "virtual_hosted_style_request": False, "region": "eu-central-1"}


def test_encryption_options_reach_the_client() -> None:
    """A bucket whose policy demands KMS encryption can hold metadata files."""
    config = s3_config(S3, {"s3.sse.type": "kms", "s3.sse.key": "arn:aws:kms:x"})
    assert config["server_side_encryption"] == "aws:kms"
    assert config["sse_kms_key_id"] == "arn:aws:kms:x"


@pytest.mark.parametrize(
    "options",
    [
        {"s3.role-arn": "arn:aws:iam::1:role/x"},
        {"s3.access-key-id": "id"},
        {"s3.secret-access-key": "secret"},
        {"s3.sse.type": "rot13"},
        {"s3.endpoint": "127.0.0.1:9000"},
        {"gcs.service.host": "ftp://x"},
    ],
)
def test_an_option_without_effect_is_refused(options: dict[str, str]) -> None:
    """Half a key pair, an unsupported role, an endpoint without scheme: a clear refusal instead of odd failures."""
    with pytest.raises(BadRequest):
        check_options(options)


def test_foreign_options_are_left_alone() -> None:
    """Options meant for clients only do not disturb the server."""
    check_options({"s3.remote-signing-enabled": "true", "io-impl": "x", "s3.sse.type": "s3"})


def test_gcs_takes_a_key_before_a_token() -> None:
    """A service account key outlives a token."""
    assert gcs_config({"gcs.oauth2.token": "t", "gcs.service-account-key": "{}"}) == {"service_account_key": "{}"}
    assert gcs_config({"gcs.oauth2.token": "t"}) == {"bearer_token": "t"}
    assert gcs_config({"gcs.no-auth": "true", "gcs.service.host": "http://h/"}) == {
        "skip_signature": True,
        "base_url": "http://h",
    }


def test_the_azure_account_comes_from_the_location() -> None:
    """The host name of an abfss location names the account; a SAS token may be given per host."""
    key = {"adls.auth.shared-key.account.key": "a2V5"}
    assert adls_config(ADLS, key) == {"account_name": "acme"}
    assert adls_credential(ADLS, key) == {"access_key": "a2V5", "expires_at": None}
    sas = {"adls.sas-token.acme.dfs.core.windows.net": "sv=1"}
    assert adls_credential(ADLS, sas) == {"sas_token": "sv=1", "expires_at": None}
    assert adls_config(ADLS, {"adls.client-id": "i", "adls.client-secret": "s", "adls.tenant-id": "t"}) == {
        "account_name": "acme",
        "client_id": "i",
        "client_secret": "s",
        "tenant_id": "t",
    }


OWN: dict[str, dict[str, str]] = {
    "s3.endpoint": {"s3.access-key-id": "a", "s3.secret-access-key": "b"},
    "gcs.service.host": {"gcs.oauth2.token": "t"},
    "adls.endpoint": {"adls.sas-token": "sig=x"},
}


@pytest.mark.parametrize("option", OWN)
def test_a_public_endpoint_comes_with_credentials_of_its_own(option: str) -> None:
    """Without them those of the server's environment would go there; an allowed endpoint needs none."""
    endpoint = {option: "https://store.example/"}
    check_options({**endpoint, **OWN[option]})
    with pytest.raises(Forbidden, match="ICEKEEL_ALLOWED_ENDPOINTS"):
        check_options(endpoint)
    check_options(endpoint, ["https://store.example:443"])


@pytest.mark.parametrize("option", OWN)
def test_an_endpoint_inside_the_network_is_the_operators_to_allow(option: str) -> None:
    """Own credentials do not open it; an entry of another port or scheme does not either."""
    options = {option: "http://10.0.0.5:9000", **OWN[option]}
    with pytest.raises(Forbidden, match="ICEKEEL_ALLOWED_ENDPOINTS"):
        check_options(options, ["http://10.0.0.5:9001", "https://10.0.0.5:9000"])
    check_options(options, ["http://10.0.0.5:9000"])


@pytest.mark.parametrize(
    "options",
    [
        {"gcs.service.host": "https://store.example", "gcs.service-account-key": "{}", "gcs.oauth2.token": "t"},
        {"adls.endpoint": "https://s.example", "adls.client-id": "i", "adls.client-secret": "s", "adls.tenant-id": "t"},
    ],
)
def test_what_a_token_of_the_environment_passes_before_is_not_credentials_of_its_own(options: dict[str, str]) -> None:
    """The client library looks for tokens before it looks at service accounts and service principals."""
    with pytest.raises(Forbidden):
        check_options(options)
