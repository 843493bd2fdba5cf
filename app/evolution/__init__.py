"""May this version of a table follow that one? The schema diff, the lineage, the coded rules and the judge.

Pure: no I/O, no clock; metadata, evidence and time come in, findings go out. Rules enter here by name, no discovery.
A rule is one record and one function whose docstring is its manual page; what a change makes unreadable is decided
in `engine.compatibility` alone, and the rules put it into words. A rule judges only what a commit introduces.

`engine` knows no rule: this file has them register before anything in the package is used. `editing` knows neither.
"""

from app.evolution.rules import (
    defaults,
    formats,
    ids,
    lifecycle,
    names,
    nullability,
    references,
    retained_specs,
    several_sources,
    snapshots,
    structure,
    types,
    usage,
)

__all__ = [
    "defaults",
    "formats",
    "ids",
    "lifecycle",
    "names",
    "nullability",
    "references",
    "retained_specs",
    "several_sources",
    "snapshots",
    "structure",
    "types",
    "usage",
]
