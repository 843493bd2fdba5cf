"""`app.settings`: what an operator sets, and how a mistake is told."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from app.errors import BadSettings
from app.main import check_exposure, default_warehouse
from app.settings import read_settings


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))


def test_the_defaults_are_embedded_and_local(tmp_path: Path) -> None:
    """SQLite and a warehouse below ~/.icekeel, on loopback, without a token."""
    settings = read_settings()
    assert settings.home == tmp_path / ".icekeel"
    assert settings.database == f"sqlite:///{tmp_path}/.icekeel/icekeel.db" and settings.embedded
    assert settings.warehouse_location == f"{tmp_path}/.icekeel/warehouse"
    assert (settings.host, settings.port, settings.workers, settings.token) == ("127.0.0.1", 8181, 1, None)
    check_exposure(settings)


def test_the_command_line_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over the environment, where it says something."""
    monkeypatch.setenv("ICEKEEL_PORT", "1")
    monkeypatch.setenv("ICEKEEL_WORKERS", "3")
    settings = read_settings({"port": 2, "workers": None})
    assert (settings.port, settings.workers) == (2, 3)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("PORT", "tcp://10.0.0.1:8181", "ICEKEEL_PORT must be a whole number"),
        ("PORT", "70000", "ICEKEEL_PORT must be a whole number, at most 65535"),
        ("WORKERS", "0", "ICEKEEL_WORKERS must be a whole number, at least 1"),
        ("DATABASE_URL", "mysql://u:hunter2@h/d", "ICEKEEL_DATABASE_URL must start with sqlite:/// or postgresql://"),
        ("WAREHOUSE_OPTIONS", "{", "ICEKEEL_WAREHOUSE_OPTIONS must be a JSON object"),
        (
            "WAREHOUSE_OPTIONS",
            '{"s3.secret-access-key":["hunter2"]}',
            "ICEKEEL_WAREHOUSE_OPTIONS (s3.secret-access-key) must",
        ),
        ("LOG_LEVEL", "loud", "ICEKEEL_LOG_LEVEL must be one of debug, info, warning, error"),
        ("BODY_LIMIT", "10", "ICEKEEL_BODY_LIMIT must be a whole number, at least 1024"),
        ("BODY_TIMEOUT", "0", "ICEKEEL_BODY_TIMEOUT must be a number, above 0"),
        ("BODY_TIMEOUT", "nan", "ICEKEEL_BODY_TIMEOUT must be a number"),
        ("DRAIN", "soon", "ICEKEEL_DRAIN must be a number"),
        ("DRAIN", "inf", "ICEKEEL_DRAIN must be a number"),
        ("BODY_TIMEOUT", "inf", "ICEKEEL_BODY_TIMEOUT must be a number"),
        ("LOG_SLOW", "1e999", "ICEKEEL_LOG_SLOW must be a number"),
        ("IDEMPOTENCY_LIFETIME", str(1 << 62), "ICEKEEL_IDEMPOTENCY_LIFETIME must be a whole number, at most 2592000"),
        ("ALLOW_ANONYMOUS", "maybe", "ICEKEEL_ALLOW_ANONYMOUS must be true or false"),
        ("ALLOW_ANONYMOUS", "", "ICEKEEL_ALLOW_ANONYMOUS must be true or false"),
        ("HOST", "", "ICEKEEL_HOST must not be empty"),
        ("HOST", " ", "ICEKEEL_HOST must not be empty"),
        ("HOST", "hunter2\udcff", "ICEKEEL_HOST must be UTF-8"),
        ("PORT", "\udcff", "ICEKEEL_PORT must be UTF-8"),
        ("PORT", "1e-400", "ICEKEEL_PORT must be a whole number"),
        ("WORKERS", "1.5", "ICEKEEL_WORKERS must be a whole number"),
        ("WORKERS", "9" * 5000, "ICEKEEL_WORKERS must be a whole number"),
        ("TOKEN", "hunter2\udcff", "ICEKEEL_TOKEN must be UTF-8"),
        ("WAREHOUSE_OPTIONS", "[" * 50_000, "ICEKEEL_WAREHOUSE_OPTIONS must be a JSON object"),
        ("WAREHOUSE_OPTIONS", '{"s3.region":"\\ud800"}', "ICEKEEL_WAREHOUSE_OPTIONS must be UTF-8"),
        ("HOME", "~nosuchuser/x", "ICEKEEL_HOME must be a path"),
        ("WAREHOUSE_OPTIONS", "[]", "ICEKEEL_WAREHOUSE_OPTIONS must be a JSON object of strings"),
        ("SECRET_KEY", "h\u00fcnter2", "ICEKEEL_SECRET_KEY must be 32 bytes as base64"),
        ("HOME", "", "ICEKEEL_HOME must name a folder"),
        ("HOME", "  ", "ICEKEEL_HOME must name a folder"),
        ("TOKEN", "", "ICEKEEL_TOKEN is empty"),
        ("TOKEN", " \t", "ICEKEEL_TOKEN is empty"),
        ("TOKEN", "None", "ICEKEEL_TOKEN must not be None"),
        ("TOKEN", "hunter2 ", "ICEKEEL_TOKEN must not begin or end with blanks"),
        ("TOKEN", "hunter2\nx", "ICEKEEL_TOKEN must not begin or end with blanks, nor hold control characters"),
        ("WAREHOUSE", "ftp://h/x", "ICEKEEL_WAREHOUSE is no location: Unsupported location (schemes: file, s3"),
        ("WAREHOUSE", "lake", "ICEKEEL_WAREHOUSE is no location: Invalid location: 'lake' is not absolute"),
        ("WAREHOUSE", "https://user:hunter2@h/x", "ICEKEEL_WAREHOUSE is no location"),
        ("WAREHOUSE", "s3://AKIA:hunter2@bucket/x", "ICEKEEL_WAREHOUSE is no location"),
        (
            "ALLOWED_LOCATIONS",
            "s3://a/b,ftp://h/x",
            "ICEKEEL_ALLOWED_LOCATIONS (entry 2) is no location: Unsupported location",
        ),
        ("ALLOWED_ENDPOINTS", "https://a,https://u:hunter2@b", "ICEKEEL_ALLOWED_ENDPOINTS (entry 2) must be an http"),
        ("ALLOWED_ENDPOINTS", "https://a/hunter2", "ICEKEEL_ALLOWED_ENDPOINTS (entry 1) must be a URL without a path"),
        ("DATABASE_URL", "postgresql://u:hunter2@[::1/d", "ICEKEEL_DATABASE_URL must be a URL"),
        ("DATABASE_URL", "postgresql://u:hunter2/x@h/d", "ICEKEEL_DATABASE_URL must be a URL"),
        ("DATABASE_URL", "postgresql://u@h:99999999/d", "ICEKEEL_DATABASE_URL must be a URL"),
        ("WAREHOUSE_OPTIONS", '{"s3.region":"hunter2","s3.region":"b"}', "strings: a name stands there twice"),
        ("TOKN", "hunter2", "ICEKEEL_TOKN: no such setting; did you mean ICEKEEL_TOKEN?"),
        ("ALLOWED_LOCATION", "/x", "did you mean ICEKEEL_ALLOWED_LOCATIONS?"),
    ],
)
def test_a_mistake_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch, name: str, value: str, told: str) -> None:
    """With the variable's name, and never with a value that may be secret."""
    monkeypatch.setenv(f"ICEKEEL_{name}", value)
    with pytest.raises(BadSettings) as refused:
        read_settings()
    assert told in refused.value.message and "\n" not in refused.value.message
    assert "hunter2" not in refused.value.message


def test_all_mistakes_are_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever mends one does not learn of the next at the next start."""
    monkeypatch.setenv("ICEKEEL_PORT", "x")
    monkeypatch.setenv("ICEKEEL_WORKERS", "0")
    monkeypatch.setenv("ICEKEEL_DRAN", "1")
    with pytest.raises(BadSettings, match=r"ICEKEEL_DRAN: .*; ICEKEEL_PORT .*; ICEKEEL_WORKERS "):
        read_settings()


def test_a_mistake_on_the_command_line_is_told_by_its_flag() -> None:
    """Whoever wrote it set no variable."""
    with pytest.raises(BadSettings, match=r"^--allow-anonymous \(ICEKEEL_ALLOW_ANONYMOUS\) must be true or false$"):
        read_settings({"allow_anonymous": "perhaps"})


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        ("PORT", " 9000 ", 9000),
        ("BODY_TIMEOUT", "1.5", 1.5),
        ("DRAIN", "10", 10.0),
        ("DRAIN", ".5", 0.5),
        ("BODY_LIMIT", "100_000", 100_000),
        ("WORKERS", "+02", 2),
        ("WORKERS", "2.0", 2),
        ("LOG_LEVEL", "WARNING", "warning"),
        ("HOST", "Db.Example", "Db.Example"),
        *(("ALLOW_ANONYMOUS", text, True) for text in ("1", "true", "True", "YES", "on")),
        *(("ALLOW_ANONYMOUS", text, False) for text in ("0", "false", "No", "off")),
    ],
)
def test_values_are_read_as_people_write_them(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, read: object
) -> None:
    """Numbers with blanks around them, words in any case."""
    monkeypatch.setenv(f"ICEKEEL_{name}", value)
    found = getattr(read_settings(), name.lower())
    assert found == read and type(found) is type(read)


@pytest.mark.parametrize("variable", ["icekeel_token", "Icekeel_Token", "ICEKEEL_token", "icekeel_tokn"])
def test_a_setting_in_lower_case_is_a_mistake(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    """It would not be read, and the server would be open."""
    monkeypatch.setenv(variable, "hunter2")
    with pytest.raises(BadSettings, match=f"{variable}: no such setting; did you mean ICEKEEL_TOKEN"):
        read_settings()


def test_what_kubernetes_sets_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service called icekeel brings variables of that prefix into every container."""
    monkeypatch.setenv("ICEKEEL_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("ICEKEEL_SERVICE_PORT", "8181")
    monkeypatch.setenv("ICEKEEL_PORT_8181_TCP_ADDR", "10.0.0.1")
    read_settings()


def test_empty_variables_count_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compose files pass variables on that nobody set. Not the token: one that came out empty would open the server."""
    for name in ("DATABASE_URL", "WAREHOUSE", "ALLOWED_LOCATIONS", "WAREHOUSE_OPTIONS"):
        monkeypatch.setenv(f"ICEKEEL_{name}", "")
    settings = read_settings()
    assert settings.database_url is None and settings.warehouse is None
    assert settings.allowed_locations == () and settings.warehouse_options == {}


def test_locations_are_a_comma_separated_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blanks around the commas do not count."""
    monkeypatch.setenv("ICEKEEL_ALLOWED_LOCATIONS", "s3://a/b, file:/tmp ,")
    assert read_settings().allowed_locations == ("s3://a/b", "file:/tmp")


def test_a_token_is_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither are storage credentials."""
    monkeypatch.setenv("ICEKEEL_TOKEN", "hunter2")
    monkeypatch.setenv("ICEKEEL_WAREHOUSE_OPTIONS", '{"s3.secret-access-key":"hunter2"}')
    settings = read_settings()
    assert settings.token == "hunter2"
    assert "hunter2" not in repr(settings)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "203.0.113.7", "db.example"])
def test_other_machines_are_not_served_without_a_token(host: str) -> None:
    """Unless a token is set, or it is said that this is meant."""
    with pytest.raises(BadSettings):
        check_exposure(read_settings({"host": host}))
    check_exposure(read_settings({"host": host, "allow_anonymous": True}))
    check_exposure(read_settings({"host": host, "token": "x"}))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.9.9.9"])
def test_this_machine_is_served(host: str) -> None:
    """Loopback needs no token."""
    check_exposure(read_settings({"host": host}))


def test_an_empty_home_on_the_command_line_is_refused() -> None:
    """It would be the working directory."""
    with pytest.raises(BadSettings, match=r"--home \(ICEKEEL_HOME\) must name a folder"):
        read_settings({"home": ""})


def test_a_home_with_odd_characters_makes_a_good_url() -> None:
    """The path is quoted inside the database URL."""
    assert read_settings({"home": "/a b/c%d"}).database == "sqlite:////a%20b/c%25d/icekeel.db"


def test_a_home_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    """A file stands where the folder should be."""
    (tmp_path / "file").write_text("")
    with pytest.raises(BadSettings) as refused:
        read_settings({"home": str(tmp_path / "file" / "home")}).make_home()
    assert refused.value.message.startswith("ICEKEEL_HOME: cannot make ")


def test_secret_keys_are_base64_of_32_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several may be given while they are rotated; anything else is refused without being printed."""
    first, second = base64.b64encode(b"a" * 32).decode(), base64.b64encode(b"b" * 32).decode()
    monkeypatch.setenv("ICEKEEL_SECRET_KEY", f"{first}, {second}")
    assert read_settings().secret_keys == (b"a" * 32, b"b" * 32)
    for wrong in ("hunter2", base64.b64encode(b"hunter2").decode(), f"{first},hunter2"):
        monkeypatch.setenv("ICEKEEL_SECRET_KEY", wrong)
        with pytest.raises(BadSettings, match="ICEKEEL_SECRET_KEY must be 32 bytes as base64") as refused:
            read_settings()
        assert wrong not in refused.value.message
    monkeypatch.setenv("ICEKEEL_SECRET_KEY", "")
    assert read_settings().secret_keys == ()


def test_credentials_are_kept_from_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """Storage options reach clients through /v1/config, keys must not be among them."""
    monkeypatch.setenv(
        "ICEKEEL_WAREHOUSE_OPTIONS",
        '{"s3.endpoint":"http://s3","s3.access-key-id":"a","s3.secret-access-key":"b","s3.session-token":"c",'
        '"gcs.service-account-key":"d","adls.sas-token.x":"e","adls.account-key":"f","s3.region":"r"}',
    )
    warehouse = default_warehouse(read_settings())
    assert dict(warehouse.storage) == {"s3.endpoint": "http://s3", "s3.region": "r"}
    assert set(warehouse.secrets.values()) == set("abcdef")


def test_endpoints_of_the_settings_are_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are listed, in any spelling, and the one of the default warehouse."""
    monkeypatch.setenv("ICEKEEL_ALLOWED_ENDPOINTS", "https://Store.example/, http://10.0.0.5:9000")
    monkeypatch.setenv("ICEKEEL_WAREHOUSE_OPTIONS", '{"s3.endpoint": "http://minio:9000", "s3.region": "eu"}')
    settings = read_settings()
    assert settings.allowed_endpoints == ("https://store.example:443", "http://10.0.0.5:9000")
    assert settings.trusted_endpoints == (*settings.allowed_endpoints, "http://minio:9000")


def test_an_endpoint_of_the_default_warehouse_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the start, without its text."""
    monkeypatch.setenv("ICEKEEL_WAREHOUSE_OPTIONS", '{"s3.endpoint": "http://u:hunter2@minio:9000"}')
    with pytest.raises(BadSettings, match="ICEKEEL_WAREHOUSE_OPTIONS: an endpoint must be") as refused:
        _ = read_settings().trusted_endpoints
    assert "hunter2" not in refused.value.message
