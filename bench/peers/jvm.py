"""What the peers share: Maven fetches them once, and a Java that is new enough runs them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from bench.targets import ROOT

KEPT = ROOT / ".engines" / "bench"
_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
_INSTALLED = Path("/usr/lib/jvm")


class Unavailable(Exception):
    """The peer cannot run here; the message says why."""


def _maven(goal: str, *arguments: str) -> str:
    """What Maven said if it failed, else nothing."""
    if shutil.which("mvn") is None:
        raise Unavailable("mvn is not installed")
    KEPT.mkdir(parents=True, exist_ok=True)
    command = ["mvn", "-q", "-B", f"{_PLUGIN}:{goal}", *arguments]
    done = subprocess.run(command, cwd=KEPT, capture_output=True, text=True, timeout=600, check=False)
    return (done.stdout + done.stderr).strip() if done.returncode else ""


def classpath(pom: Path) -> str:
    """The class path of a project file, resolved by Maven once and kept."""
    kept = KEPT / f"{pom.stem}.classpath"
    if not kept.exists() or not all(Path(each).exists() for each in kept.read_text().split(":")):
        told = _maven("build-classpath", "-f", str(pom), f"-Dmdep.outputFile={kept}")
        if told:
            raise Unavailable(f"Maven could not assemble it: {told[-300:]}")
    return kept.read_text().strip()


def jar(group: str, name: str, version: str, classifier: str) -> Path:
    """A jar from Maven Central, fetched once and kept. So is the answer that it is not there."""
    kept = KEPT / f"{name}-{version}-{classifier}.jar"
    refused = KEPT / f"{kept.stem}.refused"
    if refused.exists():
        raise Unavailable(refused.read_text())
    if not kept.exists():
        artifact = f"{group}:{name}:{version}:jar:{classifier}"
        told = _maven("copy", f"-Dartifact={artifact}", f"-DoutputDirectory={KEPT}")
        if "Could not find artifact" in told:
            refused.write_text(f"Maven Central does not serve {artifact}")
            raise Unavailable(refused.read_text())
        if told:
            raise Unavailable(f"Maven could not fetch {artifact}: {told[-300:]}")
    return kept


def java(least: int) -> str:
    """The java of the path, of JAVA_HOME or of the system's folder: the first that is new enough."""
    homes = [Path(os.environ["JAVA_HOME"])] if "JAVA_HOME" in os.environ else []
    homes += sorted(_INSTALLED.glob("*")) if _INSTALLED.is_dir() else []
    on_path = shutil.which("java")
    for program in ([on_path] if on_path else []) + [str(home / "bin" / "java") for home in homes]:
        if _version(program) >= least:
            return program
    raise Unavailable(f"there is no Java {least} or newer here")


def _version(program: str) -> int:
    try:
        told = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
    except OSError:
        return 0
    found = re.search(r'version "(\d+)', told)
    return int(found.group(1)) if found else 0
