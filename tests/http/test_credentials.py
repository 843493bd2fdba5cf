"""Nobody who may change warehouses, or only ask, gets at the operator's credentials or at hosts inside the network."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.cli import main
from tests.backends import LOCAL_ONLY
from tests.capture import Capture, capture
from tests.http.samples import error, fresh, schema
from tests.seaweedfs import S3
from tests.server import Server

ALL = "/icekeel/v1/warehouses"
SECRET_KEY = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
AMBIENT = {
    "AWS_ACCESS_KEY_ID": "ambient-id",
    "AWS_SECRET_ACCESS_KEY": "ambient-secret",
    "AWS_SESSION_TOKEN": "ambient-session",
    "AZURE_STORAGE_TOKEN": "ambient-azure",
    "GOOGLE_BEARER_TOKEN": "ambient-google",
}
KEYS = {
    "s3.access-key-id": "AKIAOPERATOR",
    "s3.secret-access-key": "operators-own",
    "s3.session-token": "operators-hour",
}
ACCOUNT = "acme.dfs.core.windows.net"
LOCATIONS = {
    "s3.endpoint": "s3://b/{0}",
    "gcs.service.host": "gs://b/{0}",
    "adls.endpoint": f"abfss://c{{0}}@{ACCOUNT}/x",
}

pytestmark = LOCAL_ONLY


@pytest.fixture(scope="module")
def store() -> Iterator[Capture]:
    """The endpoint of somebody who wants to be sent credentials."""
    with capture() as running:
        yield running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One with a token, and with credentials of three clouds in its environment."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in AMBIENT.items():
            patch.setenv(name, value)
        settings = {"SECRET_KEY": SECRET_KEY}
        with Server(tmp_path_factory.mktemp("ambient") / "home", settings=settings, token="t" * 20) as running:
            yield running


@pytest.fixture
def http(server: Server) -> Iterator[httpx.Client]:
    with server.client(timeout=60.0) as client:
        yield client


def made(http: httpx.Client, storage: dict[str, str], location: str = "s3://b/{0}", **more: Any) -> str:
    name = fresh("lake")
    body = {"name": name, "location": location.format(name.replace("_", "")), "storage": storage, **more}
    answer = http.post(ALL, json=body)
    assert answer.status_code == 200, answer.text
    return name


def use(http: httpx.Client, name: str) -> httpx.Response:
    """Whatever makes the server ask the store of a warehouse for something."""
    http.post(f"/v1/{name}/namespaces", json={"namespace": ["a"]})
    return http.post(f"/v1/{name}/namespaces/a/tables", json={"name": fresh("t"), "schema": schema()})


@pytest.mark.parametrize("option", LOCATIONS)
def test_an_endpoint_of_the_callers_never_gets_the_servers_own_credentials(
    server: Server, http: httpx.Client, store: Capture, option: str
) -> None:
    """Neither by a new warehouse nor by a change of one; nothing is sent, and the refusal names the setting."""
    name = fresh("lake")
    location = LOCATIONS[option].format(name.replace("_", ""))
    body = {"name": name, "location": location, "storage": {option: store.url}}
    refused = error(http.post(ALL, json=body))
    assert refused["code"] == 403 and "ICEKEEL_ALLOWED_ENDPOINTS" in refused["message"]
    assert http.get(f"{ALL}/{name}").status_code == 404
    kept = made(http, {}, LOCATIONS[option])
    for change in ({option: store.url}, {option: "https://store.example"}):
        assert error(http.patch(f"{ALL}/{kept}", json={"storage": change}))["code"] == 403
    assert http.get(f"{ALL}/{kept}").json()["storage"] == {}
    assert store.requests == []


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://169.254.169.254", "https://169.254.169.254", "http://metadata.google.internal", "https://[fd00:ec2::254]",
        "https://[::ffff:169.254.169.254]", "https://2852039166", "https://0xa9fea9fe", "https://127.1",
        "https://localhost:8443", "https://10.0.0.5", "https://168.63.129.16", "https://100.100.100.200",
        "https://[64:ff9b::a9fe:a9fe]", "https://kubernetes.default.svc", "https://vault", "http://store.example",
    ],
)  # fmt: skip
def test_hosts_inside_the_network_are_no_endpoint(http: httpx.Client, endpoint: str) -> None:
    """However the address is spelt, keys or not, and for anything that is not TLS."""
    body = {"name": fresh("lake"), "location": "s3://inner/x", "storage": {"s3.endpoint": endpoint, **KEYS}}
    refused = error(http.post(ALL, json=body))
    assert refused["code"] == 403 and "ICEKEEL_ALLOWED_ENDPOINTS" in refused["message"]


@pytest.mark.parametrize(
    ("storage", "location"),
    [
        ({"s3.endpoint": "https://user:hunter2@store.example", **KEYS}, "s3://odd/x"),
        ({"s3.endpoint": "https://store.example/?sig=hunter2", **KEYS}, "s3://odd/x"),
        ({"s3.endpoint": "https://store.example\\@evil.example", **KEYS}, "s3://odd/x"),
        ({"icekeel.client.endpoint": "https://user:hunter2@store.example"}, "s3://odd/x"),
        ({"s3.region": "x.evil.example/"}, "s3://odd/x"),
        ({"client.region": "evil.example#"}, "s3://odd/x"),
        ({"adls.account-name": "evil.example/"}, f"abfss://odd@{ACCOUNT}/x"),
        ({"gcs.service-account-key": '{"gcs_base_url": "http://169.254.169.254"}'}, "gs://odd/x"),
        ({"s3.path-style-access": "false"}, "s3://evil.example:443/x"),
        ({}, "abfss://odd@evil.example:1/x"),
    ],
)
def test_nothing_names_another_host_by_the_way(http: httpx.Client, storage: dict[str, str], location: str) -> None:
    """Regions, accounts, buckets and key files become parts of host names; the refusal repeats no password."""
    refused = error(http.post(ALL, json={"name": fresh("lake"), "location": location, "storage": storage}))
    assert refused["code"] == 400 and "hunter2" not in refused["message"]


@pytest.mark.parametrize(
    "change",
    [
        {"icekeel.client.keys": "true"},
        {"s3.endpoint": "https://evil.example"},
        {"s3.endpoint": "https://evil.example", "s3.secret-access-key": "x"},
        {"s3.endpoint": "https://evil.example", "s3.access-key-id": "x", "s3.secret-access-key": "x"},
        {"s3.endpoint": None},
        {"s3.signer.uri": "https://evil.example"},
        {"s3.proxy-uri": "http://evil.example"},
        {"client.refresh-credentials-endpoint": "https://evil.example"},
        {"io-impl": "com.evil.FileIO"},
    ],
)
def test_who_gets_the_secrets_is_decided_by_those_who_have_them(
    http: httpx.Client, change: dict[str, str | None]
) -> None:
    """A change of where they go, or of who gets them, is refused with what is missing, and changes nothing."""
    name = made(http, {"s3.endpoint": "https://store.example", **KEYS})
    before = http.get(f"{ALL}/{name}").json()
    refused = error(http.patch(f"{ALL}/{name}", json={"storage": change}))
    missing = [option for option in KEYS if option not in change]
    assert refused["code"] == 400 and all(option in refused["message"] for option in missing)
    assert not any(value in refused["message"] for value in KEYS.values())
    assert http.get(f"{ALL}/{name}").json() == before


def test_with_the_secrets_given_again_all_of_it_is_possible(http: httpx.Client) -> None:
    """A new value, or null for what is not needed any more."""
    name = made(http, {"s3.endpoint": "https://store.example", **KEYS})
    moved = {"s3.endpoint": "https://new.example", **KEYS, "s3.session-token": None}
    changed = http.patch(f"{ALL}/{name}", json={"storage": moved})
    assert changed.status_code == 200, changed.text
    assert changed.json()["storage"] == {"s3.endpoint": "https://new.example"}
    assert changed.json()["secret-options"] == ["s3.access-key-id", "s3.secret-access-key"]


def test_what_decides_nothing_about_secrets_needs_none(http: httpx.Client) -> None:
    """Region, tuning, properties, places in the same store, and not to hand out keys."""
    name = made(http, {"s3.endpoint": "https://store.example", **KEYS})
    tuning = {"s3.region": "eu-west-1", "s3.multipart.threshold": "2", "icekeel.client.keys": "false"}
    body = {"storage": tuning, "properties": {"a": "1"}, "allowed-locations": [f"s3://other/{name}"]}
    assert http.patch(f"{ALL}/{name}", json=body).status_code == 200


def test_a_sas_of_one_account_is_not_sent_to_another(http: httpx.Client) -> None:
    """A place in another Azure account, as location or beside it, needs the SAS again."""
    name = made(http, {"adls.sas-token": "sig=hush"}, LOCATIONS["adls.endpoint"])
    elsewhere = "abfss://c@evil.dfs.core.windows.net/x"
    for change in ({"location": elsewhere}, {"allowed-locations": [elsewhere]}):
        refused = error(http.patch(f"{ALL}/{name}", json=change))
        assert refused["code"] == 400 and "adls.sas-token" in refused["message"] and "hush" not in refused["message"]
        again = {**change, "storage": {"adls.sas-token": "sig=other"}}
        assert http.patch(f"{ALL}/{name}", json={**again, "version": 7}).status_code == 409


SHOWN_AS = {
    "gcs.encryption-key": "hush-1",
    "gcs.decryption-key": "hush-2",
    "adls.credential": "hush-3",
    "s3.proxy-uri": "http://user:hush-4@proxy.example",
    "s3.signer.uri": "https://signer.example/?token=hush-5",
    "client.assume-role.external-id": "hush-6",
    "gcs.session-kwargs": "hush-7",
    "s3.sse.key": "hush-8",
}


def test_what_is_not_known_to_be_public_is_shown_to_nobody(server: Server, http: httpx.Client) -> None:
    """Not in the answers about warehouses, not in what clients are told, not in the log."""
    name = made(http, SHOWN_AS)
    shown = http.get(f"{ALL}/{name}")
    assert shown.json()["secret-options"] == sorted(SHOWN_AS) and shown.json()["storage"] == {}
    told = [shown, http.get(ALL), http.get("/v1/config", params={"warehouse": name}), use(http, name)]
    assert not any("hush" in answer.text for answer in told)
    assert "hush" not in server.output()


@pytest.mark.parametrize(
    "change", [{"icekeel.client.keys": "true"}, {"s3.endpoint": "https://evil.example"}, {"s3.region": "eu"}]
)
def test_options_from_the_settings_are_not_changed_by_requests(tmp_path: Path, change: dict[str, str]) -> None:
    """The operator's keys of the default warehouse neither come out nor go elsewhere."""
    settings = {"WAREHOUSE_OPTIONS": json.dumps(KEYS), "SECRET_KEY": SECRET_KEY}
    with Server(tmp_path / "home", settings=settings, token="t" * 20) as server, server.client() as http:
        refused = error(http.patch(f"{ALL}/default", json={"storage": change}))
        assert refused["code"] == 400 and "ICEKEEL_WAREHOUSE_OPTIONS" in refused["message"]
        assert "operators-own" not in use(http, "default").text


@pytest.mark.parametrize("path", [ALL, f"{ALL}/default"])
@pytest.mark.parametrize("storage", [{"icekeel.client.keys": "true"}, {"s3.endpoint": "https://evil.example", **KEYS}])
def test_without_a_token_no_option_is_taken(tmp_path: Path, path: str, storage: dict[str, str]) -> None:
    """Whoever the caller is, and whatever it brings."""
    settings = {"WAREHOUSE_OPTIONS": json.dumps(KEYS), "SECRET_KEY": SECRET_KEY}
    with Server(tmp_path / "home", settings=settings) as server, server.client() as http:
        body = {"storage": storage}
        if path == ALL:
            answer = http.post(ALL, json={"name": "x", "location": f"{server.home}/warehouses/x", **body})
        else:
            answer = http.patch(path, json=body)
        assert error(answer)["code"] in (400, 403)
        assert "operators-own" not in use(http, "default").text


def allowing(folder: Path, *endpoints: Capture | S3, **more: str) -> Server:
    urls = (one.url if isinstance(one, Capture) else one.endpoint for one in endpoints)
    settings = {"SECRET_KEY": SECRET_KEY, "ALLOWED_ENDPOINTS": ",".join(urls), **more}
    return Server(folder / "home", settings=settings, token="t" * 20)


@pytest.mark.parametrize(
    ("status", "body"), [(403, b"INNER <b>page</b>"), (500, b"INNER\nlines"), (200, b"INNER text")]
)
def test_what_an_endpoint_answers_is_repeated_to_nobody(tmp_path: Path, status: int, body: bytes) -> None:
    """Neither in the error nor in the log; the status is."""
    with capture(status, body) as store, allowing(tmp_path, store) as server, server.client(timeout=120.0) as http:
        name = made(http, {"s3.endpoint": store.url, **KEYS})
        body_ = {"name": "t", "metadata-location": f"s3://b/{name.replace('_', '')}/a/metadata/00000-x.metadata.json"}
        http.post(f"/v1/{name}/namespaces", json={"namespace": ["a"]})
        answers = [use(http, name), http.post(f"/v1/{name}/namespaces/a/register", json=body_)]
        assert store.requests
        assert not any("INNER" in answer.text for answer in answers) and "INNER" not in server.output()
        if status != 200:
            assert all(error(answer)["code"] == 503 and str(status) in answer.text for answer in answers)


def test_a_redirect_is_not_followed_to_another_host(tmp_path: Path) -> None:
    """The other host is not asked, and least of all with the session token."""
    with (
        capture(200, b"INNER", host="localhost") as inner,
        capture(302, headers={"Location": f"{inner.url}/x"}) as store,
        allowing(tmp_path, store) as server,
        server.client(timeout=120.0) as http,
    ):
        name = made(http, {"s3.endpoint": store.url, **KEYS})
        http.post(f"/v1/{name}/namespaces", json={"namespace": ["a"]})
        body = {"name": "t", "metadata-location": f"s3://b/{name.replace('_', '')}/a/metadata/00000-x.metadata.json"}
        assert error(http.post(f"/v1/{name}/namespaces/a/register", json=body))["code"] == 503
        assert store.requests and inner.requests == []


@pytest.mark.parametrize("own", [{"adls.sas-token": "sv=1&sig=mine"}, {"adls.account-key": "bWluZQ=="}])
def test_credentials_of_the_environment_never_take_the_place_of_given_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: dict[str, str]
) -> None:
    """An Azure token of the environment would pass before a warehouse's own key."""
    monkeypatch.setenv("AZURE_STORAGE_TOKEN", "ambient-azure")
    with capture(403) as store, allowing(tmp_path, store) as server, server.client(timeout=120.0) as http:
        use(http, made(http, {"adls.endpoint": store.url, **own}, LOCATIONS["adls.endpoint"]))
        assert store.requests and "ambient" not in store.text


def test_credentials_of_the_environment_go_where_the_operator_said(
    tmp_path: Path, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A warehouse on an allowed endpoint needs no keys of its own."""
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3.secret_key)
    with allowing(tmp_path, s3) as server, server.client(timeout=60.0) as http:
        answer = use(http, made(http, {"s3.endpoint": s3.endpoint}, "s3://ambient/{0}"))
        assert answer.status_code == 200, answer.text


def test_an_endpoint_that_is_allowed_no_longer_is_not_contacted(tmp_path: Path, s3: S3) -> None:
    """Also of a warehouse that was made before: its tables are refused with the setting's name, others work."""
    server = allowing(tmp_path, s3).start()
    try:
        with server.client(timeout=60.0) as http:
            keys = {"s3.access-key-id": s3.access_key, "s3.secret-access-key": s3.secret_key}
            name = made(http, {"s3.endpoint": s3.endpoint, **keys}, "s3://withdrawn/{0}")
            assert use(http, name).status_code == 200
            del server.settings["ALLOWED_ENDPOINTS"]
            server.restart()
        with server.client(timeout=60.0) as http:
            refused = error(use(http, name))
            assert refused["code"] == 403 and "ICEKEEL_ALLOWED_ENDPOINTS" in refused["message"]
            assert http.get(f"{ALL}/{name}").status_code == 200 and use(http, "default").status_code == 200
    finally:
        server.stop()


def test_the_command_line_says_what_to_give_again(
    server: Server, http: httpx.Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And takes it from a file, with an empty value for what goes."""
    name = made(http, {"s3.endpoint": "https://store.example", **KEYS})
    call = ["warehouse", "change", name, "--uri", server.url, "--token", str(server.token)]
    moved = ["--option", "s3.endpoint=https://new.example"]
    assert main([*call, *moved]) != 0
    told = capsys.readouterr().err
    assert all(option in told for option in KEYS) and "operators-own" not in told
    file = tmp_path / "keys.json"
    file.write_text(json.dumps({option: KEYS[option] for option in list(KEYS)[:2]}))
    assert main([*call, *moved, "--options-file", str(file), "--option", "s3.session-token="]) == 0
    assert "s3.endpoint=https://new.example" in capsys.readouterr().out
