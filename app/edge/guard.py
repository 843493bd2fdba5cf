"""Who may ask: the static token, and, where there is none, protection from web pages.

Without a token anything on the machine may use a loopback server, and that includes pages in a browser: a page can
send simple cross-site requests, or point its own host name at 127.0.0.1. So a request that names a foreign Host or
comes with a foreign Origin is refused, and bodies must be JSON, which a page cannot send across sites without asking.
"""

from __future__ import annotations

import hmac
import re
from functools import lru_cache
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from app.errors import BadRequest, Forbidden, NotAuthenticated

PRINCIPAL = "icekeel.principal"
ANONYMOUS = "anonymous"
TOKEN_HOLDER = "token"

_OPEN = frozenset({"/health/live", "/health/ready"})
_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_FOREIGN = frozenset({b"cross-site", b"same-site"})
_SINGLE = frozenset({b"authorization", b"host", b"origin"})
# Short runs of ASCII digits: other scripts have digits that are no numbers, and a long run is too much for `int`.
_LOOPBACK_ADDRESS = re.compile(r"127\.([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})")
_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


def host_name(authority: str) -> str:
    """The host of `host:port` or `[v6]:port`, lower case; empty when malformed."""
    try:
        return urlsplit(f"//{authority}").hostname or ""
    except ValueError:
        return ""


def _authority(origin: str) -> str | None:
    """Host and port of an origin, lower case; None for `null` and for what is malformed."""
    try:
        return urlsplit(origin).netloc.lower() or None
    except ValueError:
        return None


def is_loopback_name(host: str) -> bool:
    """True for names that a browser resolves to this machine whatever a DNS server says."""
    return host in _LOOPBACK_NAMES or host.endswith(".localhost") or _is_127(host)


def _is_127(host: str) -> bool:
    match = _LOOPBACK_ADDRESS.fullmatch(host)
    return match is not None and all(int(part) < 256 for part in match.groups())


@lru_cache(maxsize=256)
def _is_loopback(authority: str) -> bool:
    return is_loopback_name(host_name(authority))


class Guard:
    """Sets the principal, or raises NotAuthenticated (401), Forbidden (403), or BadRequest for a doubled header.

    `token` None means everyone is anonymous; `local_only` then also demands a loopback Host. Health checks and
    `public` paths need no token.
    """

    def __init__(
        self, app: ASGIApp, *, token: str | None, local_only: bool, public: frozenset[str] = frozenset()
    ) -> None:
        self._app = app
        self._token = None if token is None else token.encode("utf-8")
        self._local_only = local_only
        self._public = _OPEN | public

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope[PRINCIPAL] = self._principal(scope)
        await self._app(scope, receive, send)

    def _principal(self, scope: Scope) -> str:
        sent_once: dict[bytes, bytes] = {}
        foreign_site = False
        for name, value in scope["headers"]:
            if name in _SINGLE:
                if name in sent_once:
                    raise BadRequest(f"Header {name.decode('ascii')} was sent more than once")
                sent_once[name] = value
            elif name == b"sec-fetch-site":
                foreign_site = foreign_site or value in _FOREIGN
        if self._token is None:
            host, origin = sent_once.get(b"host", b""), sent_once.get(b"origin", b"")
            self._refuse_web_pages(scope["method"], host, origin, foreign_site)
            return ANONYMOUS
        sent = bearer(sent_once.get(b"authorization", b""))
        if sent is not None and hmac.compare_digest(sent, self._token):
            return TOKEN_HOLDER
        if scope["path"] in self._public:
            return ANONYMOUS
        if sent is None:
            raise NotAuthenticated("This server requires a bearer token: set `token` in the catalog properties")
        raise NotAuthenticated("The bearer token is not valid")

    def _refuse_web_pages(self, method: str, host: bytes, origin: bytes, foreign_site: bool) -> None:
        authority = host.decode("latin-1")
        if self._local_only and not _is_loopback(authority):
            raise Forbidden(
                f"Host {authority or '(none)'} is not a name of this machine. Without a token this server answers "
                "loopback names only; set ICEKEEL_TOKEN to serve others"
            )
        if origin and _authority(origin.decode("latin-1")) != authority.lower():
            raise Forbidden("Requests from web pages of another origin are refused while no token is set")
        if method in _WRITES and foreign_site:
            raise Forbidden("Cross-site requests are refused while no token is set")


def bearer(authorization: bytes) -> bytes | None:
    """The token of an Authorization header; None when there is none. PyIceberg writes `Bearer None` for no token."""
    scheme, _, token = authorization.partition(b" ")
    token = token.strip()
    if scheme.lower() != b"bearer" or token in (b"", b"None"):
        return None
    return token
