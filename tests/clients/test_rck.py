"""The Iceberg REST Compatibility Kit: the reference project's own catalog and view suites against a real server.

Server-side retry, names with dots and variants are on, and nothing is excluded. What the kit holds back for its own
reference server (nested namespaces, slashes, unique locations) runs as well, through a class of our own.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.clients.maven import ENGINES, need
from tests.server import Server

pytestmark = [pytest.mark.engines, pytest.mark.timeout(900)]
POM = Path(__file__).with_name("rck") / "pom.xml"

EMPTY_NAMESPACE = {
    "createAndDropEmptyNamespace",
    "namespacePropertiesOnEmptyNamespace",
    "listTablesInEmptyNamespace",
    "listNamespacesWithEmptyNamespace",
    "listViewsInEmptyNamespace",
}
"""What no REST catalog can support: a namespace without levels has no path."""

HELD_BACK = {
    "testListNestedNamespaces",
    "testDropNamespaceWithNestedNamespace",
    "testNamespaceWithSlash",
    "testTableNameWithSlash",
    "createTableInUniqueLocation",
}
"""What the kit switches off for its own reference server."""


class Outcome:
    """The results of one run, by test name."""

    def __init__(self, reports: Path) -> None:
        self.passed: set[str] = set()
        self.skipped: set[str] = set()
        self.failed: dict[str, str] = {}
        for report in sorted(reports.glob("TEST-*.xml")):
            for case in ElementTree.parse(report).getroot().iter("testcase"):
                self._add(case)

    def _add(self, case: ElementTree.Element) -> None:
        name = case.get("name", "")
        for kind in ("failure", "error"):
            fault = case.find(kind)
            if fault is not None:
                self.failed[f"{case.get('classname', '')}.{name}"] = (fault.get("message") or fault.text or "")[:500]
                return
        (self.passed if case.find("skipped") is None else self.skipped).add(name)


def maven(work: Path, tests: str, *properties: str) -> Path:
    """Run these tests of the kit's project and return the folder of reports; skips where Maven cannot assemble it."""
    need("java", "mvn")
    done = subprocess.run(
        [
            "mvn",
            "-B",
            "-f",
            str(POM),
            f"-DbuildDirectory={work / 'build'}",
            f"-Drck.tests={tests}",
            *properties,
            "test",
        ],
        capture_output=True,
        text=True,
        timeout=850,
        check=False,
    )
    log = ENGINES / "rck.log"
    log.parent.mkdir(exist_ok=True)
    log.write_text(done.stdout + done.stderr)
    reports = work / "build" / "surefire-reports"
    if not reports.exists():
        pytest.skip(f"Maven could not assemble the kit: {done.stdout[-600:]}")
    return reports


def run(work: Path, kit: str) -> Outcome:
    """Run one group of tests against a server of its own."""
    # The kit asks for locations below /tmp of its own choosing.
    with Server(work / "home", settings={"ALLOWED_LOCATIONS": "file:/tmp"}) as server:
        return Outcome(maven(work, kit, f"-Drck.uri={server.url}/", "-Drck.warehouse=default"))


def test_the_kit_passes_whole(tmp_path: Path) -> None:
    """Every test of both suites passes; the skipped ones are those that the kit itself holds back, and no other."""
    outcome = run(tmp_path, "**/RESTCompatibilityKit*Tests.class")
    assert outcome.failed == {}
    assert outcome.skipped == EMPTY_NAMESPACE | HELD_BACK
    assert len(outcome.passed) >= 140


def test_what_the_kit_holds_back_passes_too(tmp_path: Path) -> None:
    """Nested namespaces, slashes in names and unique locations work."""
    outcome = run(tmp_path, "**/UnlockedCatalogTests.class")
    assert outcome.failed == {}
    assert outcome.passed >= HELD_BACK
    assert outcome.skipped <= EMPTY_NAMESPACE
