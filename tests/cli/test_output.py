"""Output for people at a terminal, and for everything else."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from app.cli import main
from app.cli.output import busy, progress, show, show_rows
from tests.server import ROOT

_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def at_a_terminal(*arguments: str) -> str:
    """What a command prints when its output is a terminal 100 columns wide."""
    parent, child = os.openpty()
    try:
        environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
        environment.pop("NO_COLOR", None)
        command = [sys.executable, "-m", "app.cli", *arguments]
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=child, stderr=subprocess.PIPE)
        os.close(child)
        told = b""
        while True:
            try:
                piece = os.read(parent, 65536)
            except OSError:
                break
            if not piece:
                break
            told += piece
        assert process.communicate(timeout=30)[1] == b""
        assert process.returncode == 0
    finally:
        os.close(parent)
    return told.decode().replace("\r\n", "\n")


def test_a_terminal_gets_a_table_with_a_head_and_colours() -> None:
    """Severities are coloured, and long cells stay in their column."""
    told = at_a_terminal("rules")
    plain = _ESCAPE.sub("", told)
    head = plain.splitlines()[1].split()
    assert head == ["code", "severity", "rule", "summary"]
    assert "\x1b[31merror\x1b[0m" in told
    assert all(len(line) <= 100 for line in plain.splitlines())


def test_json_is_the_same_at_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Byte for byte: a terminal adds neither colours nor line breaks."""
    assert main(["rules", "--format", "json"]) == 0
    assert at_a_terminal("rules", "--format", "json") == capsys.readouterr().out


def test_a_pipe_gets_plain_lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """No head, no colours, no line breaks of ours, whatever the environment asks for."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    show_rows("text", {}, ("a", "b"), [["x" * 300, "[bold]y[/bold]"], ["z", ""]])
    show("text", {}, "t: incompatible\n  + c\n" + "w" * 300)
    assert capsys.readouterr().out == (f"{'x' * 300}  [bold]y[/bold]\nz\nt: incompatible\n  + c\n{'w' * 300}\n")


def test_progress_is_for_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Logs of a pipeline see neither bar nor spinner, and every item comes through."""
    with busy("looking"):
        assert list(progress([1, 2, 3], "planning")) == [1, 2, 3]
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "")
