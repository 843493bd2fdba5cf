"""Everything an operator can set: `ICEKEEL_*` environment variables, read once at the top and passed down as values."""

from __future__ import annotations

import base64
import difflib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, get_args
from urllib.parse import quote, urlsplit

from pydantic import BeforeValidator, Field, ValidationError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from app.catalog import storage
from app.errors import BadRequest, BadSettings
from app.iceberg.endpoint import origin
from app.iceberg.location import is_local

ENVIRONMENT_PREFIX = "ICEKEEL_"
_KEY_BYTES = 32
_CONTROL = re.compile("[\x00-\x1f\x7f]")
# pydantic takes any number that Python's float can hold for a whole one; a number's text is short.
_WHOLE = re.compile(r"[+-]?[0-9_]{1,30}(?:\.0+)?")

# Variables of the command line's clients; the server does not read them.
CLIENT_VARIABLES = frozenset({"URI"})


def _text(value: Any) -> Any:
    """Python carries bytes of the environment that are not UTF-8 as halves of characters, which cannot be written."""
    try:
        return value if not isinstance(value, str) else value.encode("utf-8").decode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("must be UTF-8") from None


def _word(value: Any) -> Any:
    """Numbers and words as people write them: in any case, with blanks around them."""
    return _text(value).strip().lower() if isinstance(value, str) else value


def _number(value: Any) -> Any:
    word = _word(value)
    if isinstance(word, str) and not _WHOLE.fullmatch(word):
        raise ValueError("must be a whole number")
    return word


def _parts(text: str) -> tuple[str, ...]:
    """A comma-separated list, as environment variables carry it."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _folder(value: str | Path) -> Path:
    """An empty text would become the working directory."""
    if not str(value).strip():
        raise ValueError("must name a folder; it is empty")
    try:
        return Path(os.path.abspath(Path(value).expanduser()))
    except RuntimeError:
        raise ValueError(f"must be a path: nobody knows the home folder that {value} begins with") from None


def _host(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    host: str = _text(text.strip())
    return host


def _database(text: str | None) -> str | None:
    if not text:
        return None
    if not text.startswith(("sqlite:///", "postgresql://", "postgres://")):
        raise ValueError("must start with sqlite:/// or postgresql://")
    try:
        # The port as well: what comes behind an odd character of a password is taken for one, and would be told.
        _ = urlsplit(text).port
    except ValueError:
        raise ValueError(
            "must be a URL: brackets stand around an IPv6 address, and odd characters of a password are percent-encoded"
        ) from None
    return text


def _place(text: str, where: str = "") -> str:
    try:
        storage.check_place(text)
    except BadRequest as error:
        # What stands before an @ or behind a ? may be a key.
        told = "is no location" if set("@?") & set(text) else f"is no location: {error.message}"
        raise ValueError(f"{where}{told}") from None
    return text


def _warehouse(text: str | None) -> str | None:
    return _place(text) if text else None


def _places(text: str | tuple[str, ...]) -> tuple[str, ...]:
    parts = _parts(text) if isinstance(text, str) else text
    return tuple(_place(part, f"(entry {number}) ") for number, part in enumerate(parts, start=1))


def _endpoints(text: str | tuple[str, ...]) -> tuple[str, ...]:
    parts = _parts(text) if isinstance(text, str) else text
    return tuple(_endpoint(part, number) for number, part in enumerate(parts, start=1))


def _endpoint(text: str, number: int) -> str:
    try:
        found = origin(text)
    except BadRequest as error:
        raise ValueError(f"(entry {number}) {error.message}") from None
    if (text.count("/") > 2 and not text.endswith("/")) or text.count("/") > 3:
        raise ValueError(f"(entry {number}) must be a URL without a path")
    return found


def _options(text: str | dict[str, str]) -> dict[str, str]:
    try:
        options = json.loads(_text(text) or "{}", object_pairs_hook=_single) if isinstance(text, str) else text
    except (ValueError, RecursionError) as error:
        raise ValueError(f"must be a JSON object of strings: {error}") from None
    if not isinstance(options, dict):
        raise ValueError("must be a JSON object of strings")
    for name, value in options.items():
        if not isinstance(value, str):
            raise ValueError(f"({name}) must be a string")
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
        raise ValueError("is empty: set it to a long random string (openssl rand -hex 32), or unset it")
    if text.strip().lower() == "none":
        raise ValueError("must not be None, which clients send when they have no token")
    if text != text.strip() or _CONTROL.search(text):
        raise ValueError("must not begin or end with blanks, nor hold control characters: no header can carry them")
    token: str = _text(text)
    return token


def _keys(text: str | None) -> str | None:
    for part in text.split(",") if text else ():
        try:
            size = len(base64.b64decode(part.strip(), validate=True))
        except ValueError:
            size = 0
        if size != _KEY_BYTES:
            raise ValueError(f"must be {_KEY_BYTES} bytes as base64 (openssl rand -base64 32)")
    return text or None


Whole = Annotated[int, BeforeValidator(_number)]
Number = Annotated[float, BeforeValidator(_word), Field(allow_inf_nan=False)]
Flag = Annotated[bool, BeforeValidator(_word)]
Level = Literal["debug", "info", "warning", "error"]


class Settings(BaseSettings):
    """The settings of one server, as `read_settings` makes them. Sizes are bytes, durations seconds.

    Each field's description is its manual, its type what a value must be.
    """

    model_config = SettingsConfigDict(
        env_prefix=ENVIRONMENT_PREFIX, extra="forbid", frozen=True, validate_default=True, hide_input_in_errors=True
    )

    home: Annotated[Path, BeforeValidator(_folder)] = Field(
        Path("~/.icekeel"), description="Folder of the embedded database and warehouse; made on start."
    )
    host: Annotated[str, BeforeValidator(_host)] = Field("127.0.0.1", description="Address to listen on.")
    port: Whole = Field(8181, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    workers: Whole = Field(1, ge=1, le=256, description="Server processes.")
    database_url: Annotated[str | None, BeforeValidator(_database)] = Field(
        None, repr=False, description="sqlite:///PATH or postgresql://...; default: SQLite in the home."
    )
    warehouse: Annotated[str | None, BeforeValidator(_warehouse)] = Field(
        None, description="Location of the default warehouse; default: `warehouse` in the home."
    )
    warehouse_options: Annotated[dict[str, str], NoDecode, BeforeValidator(_options)] = Field(
        {},
        repr=False,
        description="Storage options of the default warehouse as a JSON object, under Iceberg's property names.",
    )
    allowed_locations: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_places)] = Field(
        (), description="Locations, comma-separated, that tables may use beside their warehouse."
    )
    allowed_endpoints: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_endpoints)] = Field(
        (),
        description="Endpoints of object stores, comma-separated URLs without a path, that requests may give "
        "warehouses wherever they lie, and that are sent the credentials of the server's environment.",
    )
    token: Annotated[str, BeforeValidator(_token)] | None = Field(
        None, repr=False, description="Bearer token that every request must carry."
    )
    secret_key: Annotated[str | None, BeforeValidator(_keys)] = Field(
        None,
        repr=False,
        description="Key that encrypts the secrets of warehouses in the database: 32 bytes as base64. "
        "Of several, comma-separated, the first encrypts and all decrypt.",
    )
    allow_anonymous: Flag = Field(False, description="Serve other machines without a token.")
    document_cache: Whole = Field(256 << 20, ge=0, description="Bytes of metadata documents kept in memory.")
    body_limit: Whole = Field(64 << 20, ge=1024, description="Largest request body.")
    body_timeout: Number = Field(60.0, gt=0, le=86_400, description="Seconds a request body may take to arrive.")
    idempotency_lifetime: Whole = Field(
        1800, ge=60, le=2_592_000, description="Seconds for which a repeated Idempotency-Key gives the first outcome."
    )
    commit_queue: Whole = Field(256, ge=1, description="Commits that may wait for one table before 429 is answered.")
    keep_alive: Whole = Field(75, ge=1, le=86_400, description="Seconds an idle connection is kept open.")
    shutdown_timeout: Whole = Field(
        20, ge=1, le=3_600, description="Seconds that running requests get when the server stops."
    )
    drain: Number = Field(
        0.0,
        ge=0,
        le=600,
        description="Seconds between the signal to stop and the stop; `/health/ready` fails meanwhile, the rest works.",
    )
    log_level: Annotated[Level, BeforeValidator(_word)] = Field("info", description="Least severe log line.")
    log_format: Annotated[Literal["text", "json"], BeforeValidator(_word)] = Field(
        "text", description="Form of log lines."
    )
    log_sample: Whole = Field(
        100, ge=0, description="One in how many requests is logged; 1 = all, 0 = only failures and slow ones."
    )
    log_slow: Number = Field(
        1.0, gt=0, le=86_400, description="Seconds after which a request counts as slow and is logged."
    )

    @property
    def secret_keys(self) -> tuple[bytes, ...]:
        """The keys of `secret_key`, the one that encrypts first."""
        return tuple(base64.b64decode(text) for text in _parts(self.secret_key or ""))

    @property
    def trusted_endpoints(self) -> tuple[str, ...]:
        """The allowed endpoints, and those of the default warehouse. BadSettings when one of these is no URL."""
        chosen = [value for name, value in self.warehouse_options.items() if name in storage.ENDPOINT_OPTIONS]
        try:
            return tuple(origin(endpoint) for endpoint in (*self.allowed_endpoints, *chosen))
        except BadRequest as error:
            raise BadSettings(f"ICEKEEL_WAREHOUSE_OPTIONS: an endpoint {error.message}") from None

    @property
    def local_roots(self) -> tuple[str, ...]:
        """Folders of this machine in which warehouses may be made through the API."""
        return (str(self.home / "warehouses"), *(place for place in self.allowed_locations if is_local(place)))

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
    return {name: Setting(field.default, field.description or "") for name, field in Settings.model_fields.items()}


def read_settings(given: Mapping[str, Any] | None = None) -> Settings:
    """Settings from the environment, overridden by `given` (command line); BadSettings with one clear line."""
    overrides = {name: value for name, value in (given or {}).items() if value is not None}
    faults = _misspelt(os.environ)
    try:
        settings = Settings(**overrides)
    except ValidationError as error:
        for fault in error.errors(include_url=False, include_input=False):
            name = str(fault["loc"][0])
            variable = ENVIRONMENT_PREFIX + name.upper()
            where = f"--{name.replace('_', '-')} ({variable})" if name in overrides else variable
            faults.append(f"{where} {_told(name, fault['type'], fault.get('ctx', {}), fault['msg'])}")
    if faults:
        raise BadSettings("; ".join(faults))
    return settings


_KINDS: Final = {int: "a whole number", float: "a number", bool: "true or false"}
_BOUNDS: Final = {
    "greater_than_equal": ("ge", "at least"),
    "less_than_equal": ("le", "at most"),
    "greater_than": ("gt", "above"),
}


def _told(name: str, kind: str, context: Mapping[str, Any], message: str) -> str:
    """What a value must be, to follow the variable's name; never the value, which may be secret."""
    if kind == "value_error":
        return message.removeprefix("Value error, ")
    annotation: Any = Settings.model_fields[name].annotation
    if kind == "literal_error":
        return f"must be one of {', '.join(get_args(annotation))}"
    must = f"must be {_KINDS[annotation]}"
    if kind in _BOUNDS:
        bound, side = _BOUNDS[kind]
        return f"{must}, {side} {context[bound]:.0f}"
    return must


def _misspelt(environment: Mapping[str, str]) -> list[str]:
    """A variable that nearly is a setting is a mistake, and one in TOKEN would open the server.

    So is a setting in lower case. What is further off is left alone: Kubernetes, for one, sets ICEKEEL_SERVICE_HOST for
    a service of that name.
    """
    known = {name.upper() for name in Settings.model_fields} | CLIENT_VARIABLES
    faults = []
    for variable in environment:
        name = variable.upper().removeprefix(ENVIRONMENT_PREFIX)
        if name == variable.upper() or (name in known and variable.isupper()):
            continue
        if meant := difflib.get_close_matches(name, known, n=1, cutoff=0.85):
            faults.append(f"{variable}: no such setting; did you mean {ENVIRONMENT_PREFIX}{meant[0]}?")
    return faults
