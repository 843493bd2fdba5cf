"""Options and arguments that several commands take, alone or as bundles."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, Literal, get_type_hints

import typer

DEFAULT_URI = "http://127.0.0.1:8181"

Form = Annotated[Literal["text", "json"], typer.Option("--format", help="text for people, json for machines")]
ReportForm = Annotated[Literal["text", "json", "github"], typer.Option("--format", help="text for people, or machines")]
Home = Annotated[str | None, typer.Option(help="folder of the embedded database (default: ICEKEEL_HOME or ~/.icekeel)")]
Table = Annotated[str, typer.Argument(metavar="TABLE", help="namespace.table, or a JSON list of levels and name")]
Code = Annotated[str, typer.Argument(metavar="CODE", help="rule code, such as ICE202")]
Metadata = Annotated[str | None, typer.Option(metavar="FILE", help="work offline on this metadata.json")]
Strict = Annotated[bool, typer.Option("--strict", help="exit 1 for warnings too")]
Warehouse = Annotated[str, typer.Option(metavar="NAME", help="warehouse name")]
Uri = Annotated[str, typer.Option(metavar="URL", envvar="ICEKEEL_URI", help="server")]
Token = Annotated[str | None, typer.Option(metavar="TOKEN", envvar="ICEKEEL_TOKEN", help="bearer token")]


def takes(bundle: Callable[..., object]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A command that gets a dataclass of shared options as its first argument; typer sees the fields as parameters."""
    hints = get_type_hints(bundle, include_extras=True)
    shared = [each.replace(annotation=hints[each.name]) for each in signature(bundle).parameters.values()]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = list(signature(command, eval_str=True).parameters.values())[1:]

        @wraps(command)
        def run(**given: Any) -> None:
            command(bundle(**{each.name: given.pop(each.name) for each in shared}), **given)

        # What must be given comes first, the table before all; the shared options are last in the help.
        needed = [each for each in (*shared, *own) if each.default is each.empty]
        optional = [each for each in (*own, *shared) if each.default is not each.empty]
        named = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in (*needed, *optional)]
        run.__signature__ = Signature(named)  # type: ignore[attr-defined]
        return run

    return decorate
