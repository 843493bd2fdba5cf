"""The commands that need no server, run in this process."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from app import __version__
from app.cli import COMMANDS, main
from app.cli.client import split_table
from app.cli.waivers import duration_s
from app.errors import BadRequest
from tests.server import ROOT


def test_rules_and_their_pages(capsys: pytest.CaptureFixture[str]) -> None:
    """Every code that `rules` lists has a page that `explain` shows."""
    assert main(["rules", "--format", "json"]) == 0
    rules = json.loads(capsys.readouterr().out)["rules"]
    assert rules
    for rule in rules:
        assert main(["explain", rule["code"].lower()]) == 0
        page = capsys.readouterr().out
        assert page.startswith(f"{rule['code']} {rule['rule']}\n") and "What to do" in page


def test_the_catalogue_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    """One line a rule, starting with its code."""
    assert main(["rules"]) == 0
    assert all(line.startswith("ICE") for line in capsys.readouterr().out.splitlines())


def test_an_unknown_rule_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2 on standard error."""
    assert main(["explain", "ICE000"]) == 2
    told = capsys.readouterr()
    assert told.out == "" and told.err.startswith("icekeel: ") and told.err.count("\n") == 1


def test_offline_commands_do_not_load_a_server() -> None:
    """Asking for a rule's page takes a moment, not the time a server needs to start."""
    script = (
        "import sys; from app.cli import main; main(['rules']); "
        "print({'starlette', 'sqlalchemy', 'httpx'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Each with its line."""
    assert main(["--help"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert all(f" {name} {text}" in told for name, (_, text) in COMMANDS.items())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`icekeel COMMAND --help` works without anything running."""
    assert main([name, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"Usage: icekeel {name}")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nope"],
        ["db"],
        ["explain"],
        ["serve", "--port", "x"],
        ["waive", "grant", "a.b"],
        ["rules", "--format", "xml"],
        ["connect", "nope"],
        ["schema", "plan"],
        ["schema", "show", "a.b", "--at", "main", "--schema", "1"],
    ],
)
def test_a_wrong_command_line_is_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """With the usage on standard error."""
    assert main(arguments) == 2
    told = capsys.readouterr()
    assert told.out == "" and told.err.startswith("Usage: icekeel") and "\nError: " in told.err


def test_the_version_is_the_projects(capsys: pytest.CaptureFixture[str]) -> None:
    """The number that the package carries."""
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"icekeel {__version__}\n"


def test_db_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """check is 1 before upgrade and 0 after it; current tells the schema."""
    home = ["--home", str(tmp_path / "home")]
    assert main(["db", "check", *home]) == 1
    assert main(["db", "upgrade", *home]) == 0
    assert main(["db", "check", *home]) == 0
    capsys.readouterr()
    assert main(["db", "current", "--format", "json", *home]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "current"


def test_no_server_is_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    """It could not be done, and the line says where it was tried."""
    assert main(["policy", "get", "a.b", "--uri", "http://127.0.0.1:9"]) == 2
    assert capsys.readouterr().err.startswith("icekeel: Cannot reach http://127.0.0.1:9")


@pytest.mark.parametrize("uri", ["127.0.0.1:9", "ftp://127.0.0.1", "http://[", "http://127.0.0.1:99999"])
def test_an_address_that_cannot_be_is_exit_code_2(uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    """In one line that repeats it."""
    assert main(["warehouse", "list", "--uri", uri]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"icekeel: Cannot reach {uri}: ") and told.count("\n") == 1


def test_an_answer_of_something_else_is_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    """A web server that is no catalog answers a page."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html></html>")

        def log_message(self, *args: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Page) as other:
        threading.Thread(target=other.handle_request).start()
        assert main(["warehouse", "list", "--uri", f"http://127.0.0.1:{other.server_port}"]) == 2
    assert capsys.readouterr().err.startswith(f"icekeel: Cannot reach http://127.0.0.1:{other.server_port}: ")


def test_the_environment_names_server_and_token(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """ICEKEEL_URI stands for --uri, which wins; the help shows no token."""
    monkeypatch.setenv("ICEKEEL_URI", "http://127.0.0.1:9")
    monkeypatch.setenv("ICEKEEL_TOKEN", "s3cr3t-t0ken")
    assert main(["warehouse", "list"]) == 2
    assert "http://127.0.0.1:9: " in capsys.readouterr().err
    assert main(["warehouse", "list", "--uri", "http://127.0.0.1:7"]) == 2
    assert "http://127.0.0.1:7: " in capsys.readouterr().err
    assert main(["warehouse", "list", "--help"]) == 0
    told = capsys.readouterr().out
    assert "ICEKEEL_TOKEN" in told and "s3cr3t-t0ken" not in told


def test_a_reader_that_leaves_is_no_failure() -> None:
    """`icekeel rules | head -1`: no traceback, exit code 0."""
    command = f"{sys.executable} -u -m app.cli rules | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("text", "parts"), [("a.b", ["a", "b"]), ("a.b.c", ["a", "b", "c"]), ('["a.b", "c"]', ["a.b", "c"])]
)
def test_a_table_is_named_by_dots_or_as_a_list(text: str, parts: list[str]) -> None:
    """The list is for names that hold dots."""
    assert split_table(text) == parts


@pytest.mark.parametrize("text", ["a", "", ".", "a.", "[", '["a"]', "[1,2]", '["a",""]'])
def test_what_names_no_table_is_refused(text: str) -> None:
    """A namespace alone, blanks, and JSON that is no list of names."""
    with pytest.raises(BadRequest):
        split_table(text)


def test_durations() -> None:
    """Minutes, hours and days."""
    assert [duration_s(text) for text in ("30m", "24h", "7d")] == [1800, 86_400, 604_800]
    for text in ("", "0m", "5", "5s", "-1h", "1.5h"):
        with pytest.raises(BadRequest):
            duration_s(text)
