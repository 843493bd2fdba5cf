"""Everything an operator can set: `ICEKEEL_*` environment variables, read once at the top and passed down as values."""

from __future__ import annotations

import base64
import difflib
import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, get_args, get_type_hints
from urllib.parse import quote, urlsplit

import msgspec
from msgspec import Meta

from app.catalog import storage
from app.errors import BadRequest, BadSettings
from app.spec.endpoint import origin
from app.spec.location import is_local

ENVIRONMENT_PREFIX = "ICEKEEL_"
_KEY_BYTES = 32
_CONTROL = re.compile("[\x00-\x1f\x7f]")
_WHOLE = re.compile(r"[+-]?[0-9]+(?:_[0-9]+)*(?:\.0+)?")

# Variables of the command line's clients; the server does not read them.
CLIENT_VARIABLES = frozenset({"URI"})


_YES: Final = frozenset({"1", "true", "yes", "on", "t", "y"})
_NO: Final = frozenset({"0", "false", "no", "off", "f", "n"})


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one server, as `read_settings` makes them. Sizes are bytes, durations seconds.

    Each field's description is its manual, its type what a value must be.
    """

    home: Annotated[Path, Meta(description="Folder of the embedded database and warehouse; made on start.")] = Path(
        "~/.icekeel"
    )
    host: Annotated[str, Meta(description="Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535, description="Port to listen on; 0 takes a free one.")] = 8181
    workers: Annotated[int, Meta(ge=1, le=256, description="Server processes.")] = 1
    database_url: Annotated[
        str | None, Meta(description="sqlite:///PATH or postgresql://...; default: SQLite in the home.")
    ] = None
    warehouse: Annotated[
        str | None, Meta(description="Location of the default warehouse; default: `warehouse` in the home.")
    ] = None
    warehouse_options: Annotated[
        dict[str, str],
        Meta(
            description="Storage options of the default warehouse as a JSON object, under Iceberg's property names.",
        ),
    ] = {}
    allowed_locations: Annotated[
        tuple[str, ...],
        Meta(description="Locations, comma-separated, that tables may use beside their warehouse."),
    ] = ()
    allowed_endpoints: Annotated[
        tuple[str, ...],
        Meta(
            description="Endpoints of object stores, comma-separated URLs without a path, that requests may give "
            "warehouses wherever they lie, and that are sent the credentials of the server's environment."
        ),
    ] = ()
    token: Annotated[str | None, Meta(description="Bearer token that every request must carry.")] = None
    secret_key: Annotated[
        str | None,
        Meta(
            description="Key that encrypts the secrets of warehouses in the database: 32 bytes as base64. "
            "Of several, comma-separated, the first encrypts and all decrypt."
        ),
    ] = None
    allow_anonymous: Annotated[bool, Meta(description="Serve other machines without a token.")] = False
    document_cache: Annotated[int, Meta(ge=0, description="Bytes of metadata documents kept in memory.")] = 256 << 20
    body_limit: Annotated[int, Meta(ge=1024, description="Largest request body.")] = 64 << 20
    body_timeout: Annotated[float, Meta(gt=0, le=86_400, description="Seconds a request body may take to arrive.")] = (
        60.0
    )
    idempotency_lifetime: Annotated[
        int,
        Meta(ge=60, le=2_592_000, description="Seconds for which a repeated Idempotency-Key gives the first outcome."),
    ] = 1800
    commit_queue: Annotated[
        int, Meta(ge=1, description="Commits that may wait for one table before 429 is answered.")
    ] = 256
    keep_alive: Annotated[int, Meta(ge=1, le=86_400, description="Seconds an idle connection is kept open.")] = 75
    shutdown_timeout: Annotated[
        int, Meta(ge=1, le=3_600, description="Seconds that running requests get when the server stops.")
    ] = 20
    drain: Annotated[
        float,
        Meta(
            ge=0,
            le=600,
            description="Seconds between the signal to stop and the stop; `/health/ready` fails meanwhile, the rest "
            "works.",
        ),
    ] = 0.0
    log_level: Annotated[Literal["debug", "info", "warning", "error"], Meta(description="Least severe log line.")] = (
        "info"
    )
    log_format: Annotated[Literal["text", "json"], Meta(description="Form of log lines.")] = "text"
    log_sample: Annotated[
        int,
        Meta(ge=0, description="One in how many requests is logged; 1 = all, 0 = only failures and slow ones."),
    ] = 100
    log_slow: Annotated[
        float, Meta(gt=0, le=86_400, description="Seconds after which a request counts as slow and is logged.")
    ] = 1.0

    def __repr__(self) -> str:
        """Without the values of token, key and options, which may be secret."""
        shown = (f"{name}={getattr(self, name)!r}" for name in self.__struct_fields__ if name not in _SECRETS)
        return f"Settings({', '.join(shown)})"

    @property
    def secret_keys(self) -> tuple[bytes, ...]:
        """The keys of `secret_key`, the one that encrypts first."""
        return tuple(base64.b64decode(text) for text in _parts(self.secret_key or ""))

    @property
    def local_roots(self) -> tuple[str, ...]:
        """Folders of this machine in which warehouses may be made through the API."""
        return (str(self.home / "warehouses"), *(place for place in self.allowed_locations if is_local(place)))

    @property
    def trusted_endpoints(self) -> tuple[str, ...]:
        """The allowed endpoints, and those of the default warehouse. BadSettings when one of these is no URL."""
        chosen = [value for name, value in self.warehouse_options.items() if name in storage.ENDPOINT_OPTIONS]
        try:
            return tuple(origin(endpoint) for endpoint in (*self.allowed_endpoints, *chosen))
        except BadRequest as error:
            raise BadSettings(f"ICEKEEL_WAREHOUSE_OPTIONS: an endpoint {error.message}") from None

    @property
    def database(self) -> str:
        return self.database_url or f"sqlite:///{quote(str(self.home / 'icekeel.db'))}"

    @property
    def embedded(self) -> bool:
        """True when the database is a file of this machine, which then upgrades itself on start."""
        return self.database.startswith("sqlite:")

    def make_home(self) -> None:
        """Make the home, readable for its owner alone; BadSettings when that cannot be done."""
        try:
            self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise BadSettings(f"ICEKEEL_HOME: cannot make {self.home}: {error.strerror}") from None

    @property
    def warehouse_location(self) -> str:
        return self.warehouse or str(self.home / "warehouse")


class Setting(NamedTuple):
    """What is known of one setting: its default and its manual."""

    default: Any
    description: str


def manual() -> dict[str, Setting]:
    """Every setting by its field's name, in their order."""
    told = {name: get_args(hint)[1].description for name, hint in get_type_hints(Settings, include_extras=True).items()}
    return {one.name: Setting(_default(one), told[one.name]) for one in msgspec.structs.fields(Settings)}


def read_settings(given: Mapping[str, Any] | None = None) -> Settings:
    """Settings from the environment, overridden by `given` (command line); BadSettings with one clear line."""
    faults = _misspelt(os.environ)
    hints = get_type_hints(Settings, include_extras=True)
    found: dict[str, Any] = {}
    for field in msgspec.structs.fields(Settings):
        name = field.name
        variable = where = ENVIRONMENT_PREFIX + name.upper()
        value = (given or {}).get(name)
        if value is None:
            value = os.environ.get(variable)
        else:
            where = f"--{name.replace('_', '-')} ({variable})"
        try:
            if value is not None:
                found[name] = _read(name, value, hints[name])
            elif name == "home":
                found[name] = _folder(_default(field))
        except _Wrong as wrong:
            faults.append(f"{where} {wrong}")
    if faults:
        raise BadSettings("; ".join(faults))
    return Settings(**found)


class _Wrong(Exception):
    """Why a value cannot be, without the value, to follow the variable's name."""


def _default(field: msgspec.structs.FieldInfo) -> Any:
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()


def _read(name: str, value: Any, hint: Any) -> Any:
    reader = _READERS.get(name)
    if reader is not None:
        return reader(value)
    if isinstance(value, str):
        value = _word(_text(value), get_args(hint)[0])
    try:
        return msgspec.convert(value, hint, strict=False)
    except msgspec.ValidationError as error:
        raise _Wrong(_must(str(error), get_args(hint)[0])) from None


def _text(value: str) -> str:
    """Python carries bytes of the environment that are not UTF-8 as halves of characters, which cannot be written."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise _Wrong("must be UTF-8") from None
    return value


def _word(text: str, kind: Any) -> Any:
    """A text as the value it spells: numbers as Python writes them, words in any case, blanks around both."""
    word = text.strip().lower()
    if kind is bool:
        return "true" if word in _YES else "false" if word in _NO else text
    try:
        if kind is int:
            # Not by way of a float, which makes 0 of 1e-400. An empty text is no number either.
            return int(word.partition(".")[0] if _WHOLE.fullmatch(word) else "")
        return float(word) if kind is float else word
    except ValueError:
        raise _Wrong(_must("", kind)) from None


_KINDS: Final = {int: "a whole number", float: "a number", bool: "true or false"}
_BOUND: Final = re.compile(r"Expected `(?:int|float)` (>=|<=|>) ([0-9.]+)")
_SIDES: Final = {">=": "at least", "<=": "at most", ">": "above"}


def _must(fault: str, kind: Any) -> str:
    if (bound := _BOUND.match(fault)) is not None:
        return f"must be {_KINDS[kind]}, {_SIDES[bound[1]]} {bound[2].removesuffix('.0')}"
    if kind in _KINDS:
        return f"must be {_KINDS[kind]}"
    return f"must be one of {', '.join(get_args(kind))}"


def _parts(text: str) -> tuple[str, ...]:
    """A comma-separated list, as environment variables carry it."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _folder(value: str | Path) -> Path:
    """An empty text would become the working directory."""
    if not str(value).strip():
        raise _Wrong("must name a folder; it is empty")
    try:
        return Path(os.path.abspath(Path(value).expanduser()))
    except RuntimeError:
        raise _Wrong(f"must be a path: nobody knows the home folder that {value} begins with") from None


def _host(text: str) -> str:
    if not text.strip():
        raise _Wrong("must not be empty")
    return _text(text.strip())


def _database(text: str) -> str | None:
    if not text:
        return None
    if not text.startswith(("sqlite:///", "postgresql://", "postgres://")):
        raise _Wrong("must start with sqlite:/// or postgresql://")
    try:
        # The port as well: what comes behind an odd character of a password is taken for one, and would be told.
        _ = urlsplit(text).port
    except ValueError:
        raise _Wrong(
            "must be a URL: brackets stand around an IPv6 address, and odd characters of a password are percent-encoded"
        ) from None
    return text


def _place(text: str, where: str = "") -> str:
    try:
        storage.check_place(text)
    except BadRequest as error:
        # What stands before an @ or behind a ? may be a key.
        told = "is no location" if set("@?") & set(text) else f"is no location: {error.message}"
        raise _Wrong(f"{where}{told}") from None
    return text


def _places(text: str) -> tuple[str, ...]:
    return tuple(_place(part, f"(entry {number}) ") for number, part in enumerate(_parts(text), start=1))


def _endpoints(text: str) -> tuple[str, ...]:
    return tuple(_endpoint(part, number) for number, part in enumerate(_parts(text), start=1))


def _endpoint(text: str, number: int) -> str:
    try:
        found = origin(text)
    except BadRequest as error:
        raise _Wrong(f"(entry {number}) {error.message}") from None
    if (text.count("/") > 2 and not text.endswith("/")) or text.count("/") > 3:
        raise _Wrong(f"(entry {number}) must be a URL without a path")
    return found


def _options(text: str) -> dict[str, str]:
    try:
        options = json.loads(_text(text) or "{}", object_pairs_hook=_single)
    except (ValueError, RecursionError) as error:
        raise _Wrong(f"must be a JSON object of strings: {error}") from None
    if not isinstance(options, dict):
        raise _Wrong("must be a JSON object of strings")
    for name, value in options.items():
        if not isinstance(value, str):
            raise _Wrong(f"({name}) must be a string")
        _text(name + value)
    return options


def _single(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands there twice")
    return found


def _token(text: str) -> str:
    """A token that no client can send would lock everybody out, and an empty one let everybody in."""
    if not text.strip():
        raise _Wrong("is empty: set it to a long random string (openssl rand -hex 32), or unset it")
    if text.strip().lower() == "none":
        raise _Wrong("must not be None, which clients send when they have no token")
    if text != text.strip() or _CONTROL.search(text):
        raise _Wrong("must not begin or end with blanks, nor hold control characters: no header can carry them")
    return _text(text)


def _keys(text: str) -> str | None:
    for part in text.split(",") if text else ():
        try:
            size = len(base64.b64decode(part.strip(), validate=True))
        except ValueError:
            size = 0
        if size != _KEY_BYTES:
            raise _Wrong(f"must be {_KEY_BYTES} bytes as base64 (openssl rand -base64 32)")
    return text or None


_READERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "home": _folder,
    "host": _host,
    "database_url": _database,
    "warehouse": lambda text: _place(text) if text else None,
    "warehouse_options": _options,
    "allowed_locations": _places,
    "allowed_endpoints": _endpoints,
    "token": _token,
    "secret_key": _keys,
}
_SECRETS: Final = frozenset({"database_url", "warehouse_options", "token", "secret_key"})


def _misspelt(environment: Mapping[str, str]) -> list[str]:
    """A variable that nearly is a setting is a mistake, and one in TOKEN would open the server.

    So is a setting in lower case. What is further off is left alone: Kubernetes, for one, sets ICEKEEL_SERVICE_HOST for
    a service of that name.
    """
    known = {name.upper() for name in Settings.__struct_fields__} | CLIENT_VARIABLES
    faults = []
    for variable in environment:
        name = variable.upper().removeprefix(ENVIRONMENT_PREFIX)
        if name == variable.upper() or (name in known and variable.isupper()):
            continue
        if meant := difflib.get_close_matches(name, known, n=1, cutoff=0.85):
            faults.append(f"{variable}: no such setting; did you mean {ENVIRONMENT_PREFIX}{meant[0]}?")
    return faults
