"""`icekeel check` and `icekeel schema`, against a running server and offline."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.cli import main
from tests.server import Server

Json = dict[str, Any]
SCHEMA = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "id", "type": "long", "required": True},
        {"id": 2, "name": "sku", "type": "string", "required": False},
    ],
}
SNAPSHOT = {
    "snapshot-id": 1, "sequence-number": 1, "timestamp-ms": 4102444800000, "manifest-list": "/nowhere/1.avro",
    "summary": {"operation": "append"}, "schema-id": 0,
}  # fmt: skip
GOOD = [{"name": "id", "type": "long", "required": True}, {"name": "article", "renamed-from": "sku", "type": "string"}]
_numbers = itertools.count()
BAD = [{"name": "id", "type": "string", "required": True}, {"name": "sku", "type": "string"}]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("schemas") / "home") as running:
        yield running


class Cli:
    """The command line with its files in a folder of its own."""

    def __init__(self, server: Server, folder: Path, capsys: pytest.CaptureFixture[str], table: str) -> None:
        self.server, self.folder, self.table, self._capsys = server, folder, table, capsys
        self.out = self.err = ""

    def file(self, name: str, value: Any) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value))
        return str(path)

    def __call__(self, *words: str, online: bool = True) -> int:
        code = main([*words, *(["--uri", self.server.url] if online else [])])
        told = self._capsys.readouterr()
        self.out, self.err = told.out, told.err
        return code


@pytest.fixture
def cli(server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    """With a table of the test's own, which holds data."""
    name = f"t{next(_numbers)}"
    with server.client() as http:
        http.post("/v1/namespaces", json={"namespace": ["shop"]})
        made = http.post("/v1/namespaces/shop/tables", json={"name": name, "schema": SCHEMA})
        assert made.status_code == 200, made.text
        updates = [
            {"action": "add-snapshot", "snapshot": SNAPSHOT},
            {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 1},
        ]
        done = http.post(f"/v1/namespaces/shop/tables/{name}", json={"requirements": [], "updates": updates})
        assert done.status_code == 200, done.text
    return Cli(server, tmp_path, capsys, f"shop.{name}")


def metadata_of(cli: Cli) -> str:
    namespace, name = cli.table.split(".")
    answer = httpx.get(f"{cli.server.url}/v1/namespaces/{namespace}/tables/{name}", trust_env=False).json()
    return str(answer["metadata-location"])


def test_a_compatible_schema_is_exit_code_0(cli: Cli) -> None:
    """With what would change and what old files return."""
    assert cli("check", "--table", cli.table, cli.file("s.json", GOOD)) == 0
    assert cli.out.splitlines()[0] == f"{cli.table}: compatible"
    assert "~ article (field 2) renamed: sku -> article" in cli.out
    assert "files of schema 0 return article: value" in cli.out


def test_an_incompatible_schema_is_exit_code_1(cli: Cli) -> None:
    """Every finding, as text, as JSON, and as annotations that point at the file."""
    file = cli.file("s.json", BAD)
    assert cli("check", "--table", cli.table, file) == 1
    assert "error ICE201 type-not-promotable: column id (field 1)" in cli.out
    assert cli("check", "--table", cli.table, "--format", "json", file) == 1
    assert json.loads(cli.out)["verdict"] == "incompatible"
    assert cli("check", "--table", cli.table, "--format", "github", file) == 1
    assert cli.out.startswith(f"::error file={file},title=ICE201::ICE201 type-not-promotable: ")


@pytest.mark.parametrize("form", ["text", "json", "github"])
def test_what_could_not_be_checked_is_exit_code_2(cli: Cli, form: str) -> None:
    """No table, no server, no file, no schema in it, a stale commit: never reported as clean."""
    good = cli.file("s.json", GOOD)
    stale = {"requirements": [{"type": "assert-current-schema-id", "current-schema-id": 7}], "updates": []}
    for words in (
        ["--table", "shop.nope", good],
        ["--table", cli.table, str(cli.folder / "missing.json")],
        ["--table", cli.table, cli.file("broken.json", "{")],
        ["--table", cli.table, cli.file("number.json", "7")],
        ["--table", cli.table, cli.file("wrong.json", [{"name": "a", "type": "nonsense"}])],
        ["--table", cli.table, cli.file("stale.json", stale)],
        ["--metadata", str(cli.folder / "missing.metadata.json"), good],
        [good],
    ):
        assert cli("check", "--format", form, *words) == 2, (words, cli.out)
        assert "not-checked" in cli.out or "not checked" in cli.err, words
    assert main(["check", "--format", form, "--uri", "http://127.0.0.1:1", "--table", cli.table, good]) == 2


def test_warnings_count_when_asked_to(cli: Cli) -> None:
    """`--strict` makes them exit code 1."""
    file = cli.file("s.json", [{"name": "id", "type": "long", "required": True}])
    assert cli("check", "--table", cli.table, file) == 0
    assert "warn  ICE801" in cli.out
    assert cli("check", "--table", cli.table, "--strict", file) == 1


def test_a_metadata_file_is_judged_offline(cli: Cli) -> None:
    """The same verdicts, without a server."""
    metadata = metadata_of(cli)
    for value, code in ((GOOD, 0), (BAD, 1)):
        file = cli.file("s.json", value)
        assert cli("check", "--metadata", metadata, "--format", "json", file, online=False) == code
        offline = json.loads(cli.out)
        assert cli("check", "--table", cli.table, "--format", "json", file) == code
        online = json.loads(cli.out)
        assert offline == online
    operations = cli.file("o.json", {"operations": [{"op": "drop", "path": "nope"}]})
    assert cli("check", "--metadata", metadata, operations, online=False) == 1
    assert "No such column: nope" in cli.out


def test_a_folder_is_planned_and_applied(cli: Cli) -> None:
    """Names come from folders; a second run finds everything up to date."""
    folder = str(cli.folder / "tables")
    file = cli.file(f"tables/{cli.table.replace('.', '/')}.json", {"fields": GOOD})
    assert cli("schema", "plan", "-f", folder) == 0
    assert "article (field 2) renamed" in cli.out
    assert cli("schema", "apply", "-f", folder) == 0
    assert cli.out.splitlines()[0] == f"{cli.table}: schema 1"
    assert cli("schema", "apply", "-f", folder) == 0
    assert cli.out == f"{cli.table}: up to date\n"
    assert cli("schema", "plan", "--root", folder, "--file", file) == 0
    assert cli("schema", "plan", "-f", folder, "--metadata", metadata_of(cli)) == 0


def test_many_files_follow_one_option(cli: Cli) -> None:
    """As a shell writes `-f tables/*.json`; each file is planned, options may come after them."""
    files = [cli.file(f"{name}.json", {"table": cli.table, "fields": GOOD}) for name in ("a", "b", "c")]
    assert cli("schema", "plan", "-f", *files, "--format", "json") == 0
    assert [one["file"] for one in json.loads(cli.out)["tables"]] == files
    assert cli("schema", "plan", "-f", files[2], "-f", files[0], "--format", "json") == 0
    assert [one["file"] for one in json.loads(cli.out)["tables"]] == [files[2], files[0]]


def test_nothing_is_applied_unless_everything_may_be(cli: Cli) -> None:
    """One file is refused, so the other table stays as it is."""
    cli.file("tables/a.json", {"table": cli.table, "fields": GOOD})
    cli.file("tables/b.json", {"table": cli.table, "fields": BAD})
    assert cli("schema", "apply", "-f", str(cli.folder / "tables")) == 1
    assert "nothing was applied" in cli.err
    assert cli("schema", "show", cli.table) == 0
    assert cli.out.startswith("schema 0\n")
    cli.file("tables/b.json", {"table": "shop.nope", "fields": GOOD})
    assert cli("schema", "apply", "--format", "github", "-f", str(cli.folder / "tables")) == 2
    assert "title=not-checked::shop.nope: Table does not exist: shop.nope" in cli.out


def test_a_folder_without_table_files_is_exit_code_2(cli: Cli) -> None:
    """Nothing compared is nothing clean; so is a file that does not say which table it is."""
    (cli.folder / "empty").mkdir()
    assert cli("schema", "plan", "-f", str(cli.folder / "empty")) == 2
    assert cli("schema", "plan", "-f", cli.file("alone.json", {"fields": GOOD})) == 2
    assert "say which table it is" in cli.err


def test_the_past_is_read(cli: Cli) -> None:
    """Log, diff, show and column, by a server or from a metadata file."""
    cli.file("tables/a.json", {"table": cli.table, "fields": GOOD})
    assert cli("schema", "apply", "-f", str(cli.folder / "tables")) == 0
    assert cli("schema", "log", cli.table) == 0
    assert cli.out.startswith("schema 1  20") and "anonymous (icekeel-cli)" in cli.out
    assert cli("schema", "log", cli.table, "--change", "dropped") == 0
    assert cli.out == "no schema changes\n"
    assert cli("schema", "diff", cli.table, "0") == 0
    assert cli.out == "~ article (field 2) renamed: sku -> article\n"
    assert cli("schema", "show", cli.table, "--at", "main") == 0
    assert cli.out == "schema 0\n  1: id: required long\n  2: sku: optional string\n"
    assert cli("schema", "show", cli.table, "--at", "1", "--format", "json") == 0
    assert json.loads(cli.out)["schema-id"] == 0
    assert cli("schema", "column", cli.table, "article") == 0
    assert "schema 0: sku: optional string" in cli.out and "reachable from main" in cli.out
    metadata = metadata_of(cli)
    assert cli("schema", "column", cli.table, "2", "--metadata", metadata) == 0
    assert cli("schema", "log", cli.table, "--metadata", metadata) == 0
    assert "before it came here" in cli.out


@pytest.mark.parametrize(
    "words", [["diff", "9"], ["show", "--schema", "9"], ["show", "--at", "nope"], ["column", "nope"]]
)
def test_what_is_not_there_is_exit_code_2(cli: Cli, words: list[str]) -> None:
    """One line on standard error."""
    assert cli("schema", words[0], cli.table, *words[1:]) == 2
    assert cli.err.startswith("icekeel: ") and cli.err.count("\n") == 1
