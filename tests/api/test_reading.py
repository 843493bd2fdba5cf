"""What a request says of who asks."""

from __future__ import annotations

import pytest
from starlette.requests import Request

from app.api import reading
from app.catalog.contention import Peer
from app.edge.guard import PRINCIPAL


def request(client: Peer | None, **headers: str) -> Request:
    """A GET on the connection of `client`."""
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": raw, "client": client}
    return Request({**scope, PRINCIPAL: "token"})


@pytest.mark.parametrize(
    ("client", "headers", "told"),
    [
        (("10.0.0.7", 4711), {}, ("10.0.0.7", 4711)),
        (
            ("10.0.0.7", 4711),
            {"user_agent": "x", "idempotency_key": "0190c5ae-7a9c-7000-8000-000000000001"},
            ("10.0.0.7", 4711),
        ),
        *((("10.0.0.7", 4711), {name: "x"}, None) for name in ("x_forwarded_for", "x_real_ip", "forwarded", "via")),
        (None, {}, None),
    ],
)
def test_a_connection_stands_for_one_client_unless_it_is_a_proxys(
    client: Peer | None, headers: dict[str, str], told: Peer | None
) -> None:
    """Its host and port, with an idempotency key too; nothing where a proxy says that it speaks for somebody else."""
    assert reading.caller(request(client, **headers)).peer == told
