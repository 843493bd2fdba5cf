"""Endpoints of object stores: one spelling to compare, and which of them lie in public."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import BadRequest
from app.spec.endpoint import host, is_public, origin


@pytest.mark.parametrize(
    ("endpoint", "expected"),
    [
        ("https://Store.Example", "https://store.example:443"),
        ("HTTPS://store.example/path/", "https://store.example:443"),
        ("http://store.example:80", "http://store.example:80"),
        ("http://my_minio:9000", "http://my_minio:9000"),
        ("http://[::1]:9000", "http://[::1]:9000"),
    ],
)
def test_an_origin_is_scheme_host_and_port(endpoint: str, expected: str) -> None:
    """In lower case, with the port of the scheme where none is given, and without the path."""
    assert origin(endpoint) == expected


@pytest.mark.parametrize(
    "endpoint",
    [
        "", "store.example", "ftp://store.example", "https://", "https:///x", "https://user@store.example",
        "https://user:hunter2@store.example", "https://a.example\\@b.example", "https://store.example?x=hunter2",
        "https://store.example/#x", "https://store.example:99999", "https://store.example:", "https://st\u00f6re.example",
        "https://store .example", "https://store.example\n", "https://%65vil.example", "https://store.example.",
        "https://store.example/%2e%2e",
    ],
)  # fmt: skip
def test_what_could_be_read_as_another_host_is_no_endpoint(endpoint: str) -> None:
    """Users, passwords, queries, escapes and odd characters are refused, in words that do not repeat them."""
    with pytest.raises(BadRequest) as refused:
        origin(endpoint)
    assert "hunter2" not in refused.value.message


@given(st.text(alphabet="abz019.-_:/@\\#?%[] \t\n\u00e9", max_size=30))
def test_the_host_is_the_one_that_others_see(rest: str) -> None:
    """Whatever is an endpoint here has the same host for Python's own parser."""
    try:
        found = host(f"https://{rest}")
    except BadRequest:
        return
    assert found == urlsplit(f"https://{rest}").hostname


@pytest.mark.parametrize(
    "endpoint",
    ["https://s3.eu-west-1.amazonaws.com", "https://8.8.8.8:9000", "https://store.example/x", "https://[2606:4700::1]"],
)
def test_public_names_and_addresses_over_tls_are_public(endpoint: str) -> None:
    """Whoever listens there is not inside the network."""
    assert is_public(endpoint)


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://store.example", "https://localhost", "https://LOCALHOST", "https://a.localhost", "https://minio",
        "https://127.0.0.1", "https://127.1", "https://2130706433", "https://0x7f000001", "https://0177.0.0.1",
        "https://10.1.2.3", "https://192.168.1.1", "https://172.16.0.1", "https://0.0.0.0", "https://224.0.0.1",
        "https://169.254.169.254", "https://169.254.170.2", "https://100.100.100.200", "https://168.63.129.16",
        "https://[::1]", "https://[fe80::1]", "https://[fd00:ec2::254]", "https://[::ffff:8.8.8.8]",
        "https://[2002:a9fe:a9fe::1]", "https://[64:ff9b::a9fe:a9fe]", "https://metadata.google.internal",
        "https://kubernetes.default.svc", "https://x.svc.cluster.local",
    ],
)  # fmt: skip
def test_what_lies_inside_a_network_is_not_public(endpoint: str) -> None:
    """Loopback, private, link-local and metadata addresses in every spelling, inner names, and all without TLS."""
    assert not is_public(endpoint)
