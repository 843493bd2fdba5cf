"""Endpoints: the URLs of object stores, compared by scheme, host and port."""

from __future__ import annotations

import ipaddress
import re
from typing import Final

from app.errors import BadRequest

# Narrower than URLs are: what two parsers could read as two hosts (backslashes, user names, odd escapes) is none.
_ENDPOINT: Final = re.compile(
    r"(?P<scheme>https?)://"
    r"(?P<host>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])"
    r"(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<path>/[A-Za-z0-9._~/-]*)?",
    re.IGNORECASE | re.ASCII,
)
_PORTS: Final = {"http": 80, "https": 443}

# Last labels of names that mean something inside a network only.
_INNER: Final = frozenset(
    {"arpa", "corp", "home", "internal", "intranet", "lan", "local", "localdomain", "localhost", "svc"}
)
# Azure answers every machine's own questions at an address that looks public.
_INNER_ADDRESSES: Final = frozenset({ipaddress.ip_address("168.63.129.16")})
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")


def origin(endpoint: str) -> str:
    """`scheme://host:port` in lower case, the port always there.

    BadRequest, without the text, unless it is an http(s) URL of a host, without user, password, query or fragment.
    """
    found = _ENDPOINT.fullmatch(endpoint)
    if found is None or int(found["port"] or 0) > 65_535:
        raise BadRequest("must be an http:// or https:// URL of a host, without user, password, query or fragment")
    scheme = found["scheme"].lower()
    return f"{scheme}://{found['host'].lower()}:{int(found['port'] or _PORTS[scheme])}"


def host(endpoint: str) -> str:
    """The host of an endpoint, in lower case and without the brackets of an IPv6 address. BadRequest as `origin`."""
    return origin(endpoint).partition("://")[2].rpartition(":")[0].strip("[]")


def is_public(endpoint: str) -> bool:
    """Whether the endpoint is https:// and its host, as written, is neither an address nor a name of a private network.

    Over TLS a public name whose address is private leads to no server that could show a certificate for it.
    """
    return origin(endpoint).startswith("https:") and _is_public_host(host(endpoint))


def _is_public_host(name: str) -> bool:
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        last = name.rpartition(".")[2]
        # A last label that begins with a digit makes an IPv4 address of odd spellings (127.1, 0x7f000001).
        return "." in name and not last[:1].isdigit() and last not in _INNER
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address if address in _NAT64 else None)
        if inner is not None:
            return False
    return address.is_global and not address.is_multicast and address not in _INNER_ADDRESSES
