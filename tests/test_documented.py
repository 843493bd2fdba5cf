"""The README against the program: its examples run, and what it lists is what there is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.cli import COMMANDS
from app.evolution.engine.registry import RULES
from app.settings import manual
from tests.server import Server

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()


def blocks() -> list[tuple[str, str]]:
    """Fenced blocks as (language, text), in order."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def one_line(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("readme") / "home") as running:
        yield running


def test_the_quickstart_does_what_the_readme_shows(server: Server) -> None:
    """Every Python example runs in order on a new server; where the README shows a refusal, it comes word for word."""
    found = blocks()
    names: dict[str, Any] = {}
    ran = refusals = 0
    for (language, code), (_, shown) in zip(found, [*found[1:], ("", "")], strict=True):
        if language != "python":
            continue
        program = compile(code.replace("http://127.0.0.1:8181", server.url), "README.md", "exec", dont_inherit=True)
        ran += 1
        expected = re.match(r"(\w+Error): (.*)", shown, re.DOTALL)
        if expected is None:
            exec(program, names)
            continue
        with pytest.raises(Exception) as caught:
            exec(program, names)
        assert type(caught.value).__name__ == expected[1]
        assert one_line(str(caught.value)) == one_line(expected[2])
        refusals += 1
    assert ran >= 3
    assert refusals >= 2


def test_every_setting_is_listed_with_its_default_and_description() -> None:
    """The table of settings is that of the settings class, in its order."""
    listed = re.findall(r"^\| `ICEKEEL_(\w+)` \| (.*?) \| (.*) \|$", README, re.MULTILINE)
    assert [(name, meaning) for name, _, meaning in listed] == [
        (name.upper(), setting.description) for name, setting in manual().items()
    ]
    for (name, default, _), (value, _) in zip(listed, manual().values(), strict=True):
        shown = str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else value
        assert default.strip("`") == ("" if value in (None, ()) else str(shown)), name


def test_every_command_is_listed() -> None:
    """Each command of the program has its place in the README."""
    assert COMMANDS
    for name in COMMANDS:
        assert f"`icekeel {name}" in README, name


def test_every_code_that_the_readme_names_is_a_live_rule() -> None:
    """No example speaks of a rule that is gone."""
    codes = set(re.findall(r"\bICE\d{3}\b", README))
    assert codes
    assert codes <= {rule.code for rule in RULES if not rule.retired}


def test_every_storage_option_is_understood() -> None:
    """What the README lists as options of a warehouse is what the storage room reads."""
    source = (ROOT / "app" / "objects" / "options.py").read_text()
    options = set(re.findall(r"`((?:s3|gcs|adls)\.[a-z0-9.-]+)`", README))
    assert len(options) > 10
    for option in options:
        assert f'"{option}"' in source, option


def test_every_make_target_is_explained() -> None:
    """`make help` knows each phony target, and the README names only targets that exist."""
    makefile = (ROOT / "Makefile").read_text()
    phony = set(re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[1].split())  # type: ignore[index]
    explained = set(re.findall(r"^([a-z]+):.*## ", makefile, re.MULTILINE))
    assert phony == explained
    assert set(re.findall(r"(?:`|^)make ([a-z]+)", README, re.MULTILINE)) <= phony
