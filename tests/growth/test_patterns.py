"""Regular expressions do not backtrack for longer than their text."""

from __future__ import annotations

import re

import pytest

from tests.growth.grammars import GRAMMARS
from tests.growth.patterns import Use, fault, uses

# The command line runs on the machine of who types.
USES = uses("app.cli")

# Looked for everywhere, with repeats: each match takes what it looked at, so nothing is looked at twice. How the work
# grows is measured in `test_grammars`.
MEASURED = {"app.catalog.etags._TAG"}


@pytest.mark.parametrize("use", USES, ids=lambda use: f"{use.module}.{use.name}")
def test_a_pattern_is_linear(use: Use) -> None:
    """No pattern of the server has two repeats that can share out one text."""
    if f"{use.module}.{use.name}" in MEASURED:
        assert any(use.module in grammar.modules for grammar in GRAMMARS)
    else:
        assert fault(use.pattern, scans=use.scans) is None, use.pattern.pattern


@pytest.mark.parametrize(
    ("pattern", "scans"),
    [
        (r"a\s*\(\s*([^)]*?)\s*\)", False),
        (r"a\s*(?:\(\s*([^,]*?)\s*(?:,\s*(\w*)\s*)?\))?", False),
        (r"(a+)+b", False),
        (r"(a|aa)*b", False),
        (r"(?:\s*x?)*y", False),
        (r".*a.*b", False),
        (r"\s+$", True),
        (r"a++b", True),
    ],
)
def test_a_pattern_that_backtracks_is_found(pattern: str, scans: bool) -> None:
    """Known shapes of trouble do not pass."""
    assert fault(re.compile(pattern), scans=scans) is not None


@pytest.mark.parametrize(
    ("pattern", "scans"),
    [
        (r"decimal\s*\(\s*([0-9]+)\s*,\s*([0-9]+)\s*\)", False),
        (r"\d+(?:\.\d+)*", False),
        (r"(?:[0-9A-F]{2})*", False),
        (r"\s*+x\s*+", False),
        (r"[^a-z]", True),
        (r"^[a-z]+://[^/]*", True),
    ],
)
def test_a_pattern_that_does_not_is_let_through(pattern: str, scans: bool) -> None:
    """Repeats that something parts are fine."""
    assert fault(re.compile(pattern), scans=scans) is None
