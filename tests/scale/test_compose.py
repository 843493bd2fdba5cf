"""`docker-compose.scale.yml` and the operations page against the program: the same processes by hand."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from pyiceberg.catalog import load_catalog

from app.settings import manual
from tests.backends import Scaled
from tests.server import ROOT, Server

COMPOSE: Any = yaml.safe_load((ROOT / "docker-compose.scale.yml").read_text())
# What a server adds to draining and running requests at its end, by the operations page.
SILENT_DATABASE_S = 25
OPERATIONS = (ROOT / "docs" / "operations.md").read_text()


def filled(text: str, **values: str) -> str:
    """Compose's own substitution of `${NAME:-default}` and `${NAME:?...}`."""
    return re.sub(r"\$\{(\w+):[-?]([^}]*)\}", lambda found: values.get(found[1], found[2]), text)


def settings_of(service: str) -> dict[str, str]:
    environment = COMPOSE["services"][service]["environment"]
    return {
        name.removeprefix("ICEKEEL_"): filled(str(value), ICEKEEL_TOKEN="t0ken") for name, value in environment.items()
    }


def test_the_settings_of_the_replicas_exist_and_are_the_same() -> None:
    """A misspelt one would be ignored."""
    assert settings_of("icekeel-1") == settings_of("icekeel-2") == settings_of("upgrade")
    assert {name.lower() for name in settings_of("icekeel-1")} <= set(manual())


def test_the_proxy_knows_every_replica() -> None:
    """By the names and the port of the services."""
    served = re.findall(r"server (icekeel-\d+):(\d+)", (ROOT / "docs" / "nginx.conf").read_text())
    assert served == [(name, "8181") for name in COMPOSE["services"] if name.startswith("icekeel-")]


@pytest.mark.parametrize("file", ["docker-compose.yml", "docker-compose.scale.yml"])
def test_containers_may_take_as_long_to_stop_as_a_server_can(file: str) -> None:
    """Draining, running requests, and a database that does not answer."""
    services = yaml.safe_load((ROOT / file).read_text())["services"]
    serving = [service for service in services.values() if "stop_grace_period" in service]
    assert serving
    for service in serving:
        drain = float(service["environment"].get("ICEKEEL_DRAIN", manual()["drain"].default))
        grace = float(service["stop_grace_period"].rstrip("s"))
        assert drain + manual()["shutdown_timeout"].default + SILENT_DATABASE_S <= grace


def test_nothing_is_open_to_other_machines() -> None:
    """Every published port is bound to this machine."""
    ports = [port for service in COMPOSE["services"].values() for port in service.get("ports", ())]
    assert len(ports) == 2 and all(port.startswith("127.0.0.1:") for port in ports)


def test_the_same_processes_by_hand_serve_a_client_without_flags(backend: Scaled, tmp_path: Path) -> None:
    """The warehouse options of the file, with the addresses and keys of this machine, and a token."""
    ours = backend.settings(tmp_path)
    theirs = settings_of("icekeel-1")
    options = json.loads(theirs["WAREHOUSE_OPTIONS"])
    options |= {
        "s3.endpoint": backend.s3.endpoint,
        "icekeel.client.endpoint": backend.s3.endpoint,
        "s3.access-key-id": backend.s3.access_key,
        "s3.secret-access-key": backend.s3.secret_key,
    }
    settings = {**theirs, **ours, "WAREHOUSE_OPTIONS": json.dumps(options)}
    with Server(tmp_path / "home", settings=settings, token="t0ken") as replica:
        catalog = load_catalog("icekeel", type="rest", uri=replica.url, token="t0ken")
        catalog.create_namespace("shop")
        rows = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
        catalog.create_table("shop.orders", schema=rows.schema).append(rows)
        assert catalog.load_table("shop.orders").scan().to_arrow().num_rows == 3
        assert replica.line("WAREHOUSE default HANDS OUT ITS STATIC KEYS")
        assert backend.s3.secret_key not in replica.output()


def test_every_metric_is_explained(backend: Scaled, tmp_path: Path) -> None:
    """The table of the operations page names what /metrics shows."""
    with Server(tmp_path / "home", settings=backend.settings(tmp_path)) as replica, replica.client() as http:
        shown = set(re.findall(r"^# TYPE (icekeel_\w+) ", http.get("/metrics").text, re.MULTILINE))
    named: set[str] = set()
    for first, *others in (
        re.findall(r"`(\w+)", line.split("|")[1]) for line in OPERATIONS.splitlines() if line.startswith("| `icekeel_")
    ):
        stem = re.match(r"icekeel_(?:table|document_cache)|", first)
        named |= {first, *(f"{stem[0]}{other}" if stem else other for other in others)}
    assert shown - named == set()


def test_every_setting_that_the_page_names_exists() -> None:
    """No manual for what is not there."""
    named = set(re.findall(r"ICEKEEL_(\w+)", OPERATIONS))
    assert {name.lower() for name in named} <= set(manual())
