"""The commands that need no server, run in this process."""

from __future__ import annotations

import json
import subprocess
import sys
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
        "print('starlette' in sys.modules, 'sqlalchemy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False False"


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Each with its line."""
    with pytest.raises(SystemExit) as left:
        main(["--help"])
    told = capsys.readouterr().out
    assert left.value.code == 0 and all(name in told for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`icekeel COMMAND --help` works without anything running."""
    with pytest.raises(SystemExit) as left:
        main([name, "--help"])
    assert left.value.code == 0 and f"icekeel {name}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments", [[], ["nope"], ["db"], ["explain"], ["serve", "--port", "x"], ["waive", "grant", "a.b"]]
)
def test_a_wrong_command_line_is_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """With the usage on standard error."""
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2 and "usage: icekeel" in capsys.readouterr().err


def test_the_version_is_the_projects(capsys: pytest.CaptureFixture[str]) -> None:
    """The number that the package carries."""
    with pytest.raises(SystemExit):
        main(["--version"])
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
