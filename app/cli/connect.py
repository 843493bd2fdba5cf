"""`icekeel connect`: what to paste into an engine so that it talks to a running server."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal
from urllib.parse import quote

import typer

from app.cli.client import Server
from app.cli.options import Form, Warehouse, takes
from app.cli.output import show

app = typer.Typer()

_TOKEN = "<ICEKEEL_TOKEN>"
_KEYS = "icekeel.client.keys"


@dataclass(frozen=True, slots=True)
class Place:
    """A warehouse of a server, as an engine needs to know it."""

    uri: str
    warehouse: str
    location: str
    config: Mapping[str, str]
    keys: bool
    token: bool

    @property
    def cloud(self) -> bool:
        return self.location.startswith(("s3", "gs", "abfs", "wasb"))

    @property
    def s3(self) -> bool:
        return self.location.startswith("s3")

    @property
    def own_keys(self) -> bool:
        """Whether the engine needs keys of its own."""
        return self.cloud and not self.keys


@app.command("connect")
@takes(Server)
def connect(
    server: Server,
    engine: Annotated[
        Literal["chdb", "duckdb", "polars", "pyiceberg", "sail", "spark"], typer.Argument(help="what shall connect")
    ],
    warehouse: Warehouse = "default",
    form: Form = "text",
) -> None:
    """Print how an engine connects to a running server."""
    found = server.call("GET", f"/icekeel/v1/warehouses/{quote(warehouse, safe='')}")
    told = server.call("GET", "/v1/config", query={"warehouse": warehouse})
    place = Place(
        uri=server.uri.rstrip("/"),
        warehouse=found["name"],
        location=found["location"],
        config=told["defaults"],
        keys=found["storage"].get(_KEYS) == "true",
        token=bool(server.token),
    )
    language, pasted = ENGINES[engine](place)
    snippet = "\n".join(pasted)
    show(form, {"engine": engine, "language": language, "snippet": snippet}, snippet)


def _pyiceberg(place: Place) -> tuple[str, list[str]]:
    return "python", [*_python_imports(place), *_python_catalog(place), "print(catalog.list_namespaces())"]


def _polars(place: Place) -> tuple[str, list[str]]:
    """Polars reads through PyIceberg but opens the files itself, with options of its own."""
    return "python", [
        "import polars",
        *_python_imports(place),
        *_python_catalog(place),
        *_polars_options(place),
        "for namespace in catalog.list_namespaces():",
        "    for name in catalog.list_tables(namespace):",
        "        table = catalog.load_table(name)",
        f"        print(name, polars.scan_iceberg(table{_polars_call(place)}).collect().shape)",
    ]


def _polars_options(place: Place) -> list[str]:
    if not place.s3:
        return []
    lines = ["def options(table):", "    given = table.io.properties", "    return {"]
    names = {
        "aws_endpoint_url": "s3.endpoint",
        "aws_region": "s3.region",
        "aws_access_key_id": "s3.access-key-id",
        "aws_secret_access_key": "s3.secret-access-key",
        "aws_session_token": "s3.session-token",
    }
    lines += [f"        {json.dumps(theirs)}: given.get({json.dumps(ours)})," for theirs, ours in names.items()]
    insecure = place.config.get("s3.endpoint", "").startswith("http://")
    lines += [f'        "aws_allow_http": "{str(insecure).lower()}",', "    }", ""]
    return lines


def _polars_call(place: Place) -> str:
    if not place.s3:
        return ""
    return ", storage_options={k: v for k, v in options(table).items() if v}"


def _duckdb(place: Place) -> tuple[str, list[str]]:
    access = f"TOKEN '{_TOKEN}'" if place.token else "AUTHORIZATION_TYPE 'none'"
    own = ", ACCESS_DELEGATION_MODE 'none'" if place.own_keys else ""
    lines = ["INSTALL iceberg;", "INSTALL httpfs;", "LOAD iceberg;", "LOAD httpfs;"]
    if place.own_keys and place.s3:
        lines.append(_duckdb_secret(place))
    lines += [
        f"ATTACH '{place.warehouse}' AS icekeel (TYPE ICEBERG, ENDPOINT '{place.uri}', {access}{own});",
        "SHOW ALL TABLES;",
    ]
    return "sql", lines


def _duckdb_secret(place: Place) -> str:
    region = place.config.get("s3.region", "<region>")
    options = ["TYPE s3", "KEY_ID '<key>'", "SECRET '<secret>'", f"REGION '{region}'"]
    endpoint = place.config.get("s3.endpoint")
    if endpoint is not None:
        scheme, _, host = endpoint.partition("://")
        options += [f"ENDPOINT '{host}'", f"USE_SSL {str(scheme == 'https').lower()}", "URL_STYLE 'path'"]
    return f"CREATE SECRET ({', '.join(options)});"


def _spark(place: Place) -> tuple[str, list[str]]:
    prefix = "spark.sql.catalog.icekeel"
    settings = [
        ("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"),
        (prefix, "org.apache.iceberg.spark.SparkCatalog"),
        (f"{prefix}.type", "rest"),
        (f"{prefix}.uri", place.uri),
        (f"{prefix}.warehouse", place.warehouse),
        ("spark.sql.defaultCatalog", "icekeel"),
    ]
    if place.s3:
        settings.append((f"{prefix}.io-impl", "org.apache.iceberg.aws.s3.S3FileIO"))
    if place.token:
        settings.append((f"{prefix}.token", _TOKEN))
    if place.own_keys and place.s3:
        settings += [(f"{prefix}.s3.access-key-id", "<key>"), (f"{prefix}.s3.secret-access-key", "<secret>")]
    return "properties", [f"{name} {value}" for name, value in settings]


def _chdb(place: Place) -> tuple[str, list[str]]:
    """ClickHouse joins an endpoint that it is told with every key, so it must get none from the catalog."""
    where = [f"'{place.uri}/v1'"]
    settings = ["catalog_type = 'rest'", f"warehouse = '{place.warehouse}'"]
    if place.s3:
        bucket = place.location.split("/")[2]
        endpoint = place.config.get("s3.endpoint", "<endpoint of the store>")
        settings.append(f"storage_endpoint = '{endpoint}/{bucket}'")
        if not place.keys or "s3.endpoint" in place.config:
            where += ["'<key>'", "'<secret>'"]
            settings.append("vended_credentials = 0")
    if place.token:
        settings.append(f"auth_header = 'Authorization: Bearer {_TOKEN}'")
    return "sql", [
        "SET allow_database_iceberg = 1;",
        f"CREATE DATABASE icekeel ENGINE = DataLakeCatalog({', '.join(where)}) SETTINGS {', '.join(settings)};",
        "SHOW TABLES FROM icekeel;",
    ]


def _sail(place: Place) -> tuple[str, list[str]]:
    """Sail opens files with the AWS variables of its process; it takes nothing of that from the catalog."""
    catalog = f'name="icekeel", type="iceberg-rest", uri="{place.uri}", warehouse="{place.warehouse}"'
    if place.token:
        catalog += f', oauth_access_token="{_TOKEN}"'
    lines = [
        "import os",
        f"os.environ['SAIL_CATALOG__LIST'] = '[{{{catalog}}}]'",
        "os.environ['SAIL_CATALOG__DEFAULT_CATALOG'] = 'icekeel'",
    ]
    if place.s3:
        lines += [
            "os.environ.setdefault('AWS_ACCESS_KEY_ID', '<key>')",
            "os.environ.setdefault('AWS_SECRET_ACCESS_KEY', '<secret>')",
            f"os.environ['AWS_REGION'] = '{place.config.get('s3.region', '<region>')}'",
        ]
        endpoint = place.config.get("s3.endpoint")
        if endpoint is not None:
            lines.append(f"os.environ['AWS_ENDPOINT'] = '{endpoint}'")
            lines.append(f"os.environ['AWS_ALLOW_HTTP'] = '{str(endpoint.startswith('http://')).lower()}'")
    return "python", [
        *lines,
        "from pysail.spark import SparkConnectServer",
        "from pyspark.sql import SparkSession",
        "server = SparkConnectServer('127.0.0.1', 0)",
        "server.start()",
        "spark = SparkSession.builder.remote(f'sc://127.0.0.1:{server.listening_address[1]}').getOrCreate()",
        "spark.sql('SHOW DATABASES').show()",
    ]


def _python_imports(place: Place) -> list[str]:
    return [*(["import os"] if place.token or place.own_keys else []), "from pyiceberg.catalog import load_catalog"]


def _python_catalog(place: Place) -> list[str]:
    lines = ["catalog = load_catalog(", '    "icekeel",', '    type="rest",', f'    uri="{place.uri}",']
    lines.append(f'    warehouse="{place.warehouse}",')
    if place.token:
        lines.append('    token=os.environ["ICEKEEL_TOKEN"],')
    if place.own_keys and place.s3:
        lines += [
            "    **{",
            '        "s3.access-key-id": os.environ["AWS_ACCESS_KEY_ID"],',
            '        "s3.secret-access-key": os.environ["AWS_SECRET_ACCESS_KEY"],',
            "    },",
        ]
    return [*lines, ")"]


ENGINES: Mapping[str, Callable[[Place], tuple[str, list[str]]]] = {
    "pyiceberg": _pyiceberg,
    "polars": _polars,
    "duckdb": _duckdb,
    "spark": _spark,
    "chdb": _chdb,
    "sail": _sail,
}
