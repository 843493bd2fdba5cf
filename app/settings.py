"""Everything an operator can set: `ICEKEEL_*` environment variables, read once at the top and passed down as values."""

from __future__ import annotations

import base64
import binascii
import difflib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from app.catalog import storage
from app.errors import BadRequest, BadSettings
from app.spec.location import is_local

ENVIRONMENT_PREFIX = "ICEKEEL_"
_KEY_BYTES = 32
_CONTROL = re.compile("[\x00-\x1f\x7f]")

# Variables of the command line's clients; the server does not read them.
CLIENT_VARIABLES = frozenset({"URI"})


def _split(value: object) -> object:
    """A comma-separated list, as environment variables carry it."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


def _decoded(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value or "{}")
    except json.JSONDecodeError as error:
        raise ValueError(f"must be a JSON object of strings: {error}") from None


def _keys(value: SecretStr | None) -> list[str]:
    return [] if value is None else [part.strip() for part in value.get_secret_value().split(",")]


def _none_if_empty(value: object) -> object:
    return None if value == "" else value


def _not_blank(value: object) -> object:
    """An empty text would become the working directory."""
    if isinstance(value, str) and not value.strip():
        raise ValueError("must name a folder; it is empty")
    return value


def _usable_token(value: SecretStr | None) -> SecretStr | None:
    """A token that no client can send would lock everybody out, and an empty one let everybody in."""
    text = None if value is None else value.get_secret_value()
    if text is None:
        return value
    if not text.strip():
        raise ValueError("is empty: set it to a long random string (openssl rand -hex 32), or unset it")
    if text.strip().lower() == "none":
        raise ValueError("must not be None, which clients send when they have no token")
    if text != text.strip() or _CONTROL.search(text):
        raise ValueError("must not begin or end with blanks, nor hold control characters: no header can carry them")
    return value


def _place(text: str) -> str:
    try:
        storage.check_place(text)
    except BadRequest as error:
        raise ValueError(error.message) from None
    return text


def _expanded(path: Path) -> Path:
    return Path(os.path.abspath(path.expanduser()))


Location = Annotated[str, AfterValidator(_place)]
Locations = Annotated[tuple[Location, ...], NoDecode, BeforeValidator(_split)]
Options = Annotated[dict[str, str], NoDecode, BeforeValidator(_decoded)]


class Settings(BaseSettings):
    """The settings of one server. Sizes are bytes, durations seconds; each field's description is its manual."""

    model_config = SettingsConfigDict(env_prefix=ENVIRONMENT_PREFIX, frozen=True, extra="forbid")

    home: Annotated[Path, BeforeValidator(_not_blank), AfterValidator(_expanded)] = Field(
        default=Path("~/.icekeel"),
        validate_default=True,
        description="Folder of the embedded database and warehouse; made on start.",
    )
    host: str = Field(default="127.0.0.1", min_length=1, description="Address to listen on.")
    port: int = Field(default=8181, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    workers: int = Field(default=1, ge=1, le=256, description="Server processes.")
    database_url: Annotated[str | None, BeforeValidator(_none_if_empty)] = Field(
        default=None, description="sqlite:///PATH or postgresql://...; default: SQLite in the home."
    )
    warehouse: Annotated[Location | None, BeforeValidator(_none_if_empty)] = Field(
        default=None, description="Location of the default warehouse; default: `warehouse` in the home."
    )
    warehouse_options: Options = Field(
        default_factory=dict,
        repr=False,
        description="Storage options of the default warehouse as a JSON object, under Iceberg's property names.",
    )
    allowed_locations: Locations = Field(
        default=(), description="Locations, comma-separated, that tables may use beside their warehouse."
    )
    token: Annotated[SecretStr | None, AfterValidator(_usable_token)] = Field(
        default=None, description="Bearer token that every request must carry."
    )
    secret_key: Annotated[SecretStr | None, BeforeValidator(_none_if_empty)] = Field(
        default=None,
        description="Key that encrypts the secrets of warehouses in the database: 32 bytes as base64. "
        "Of several, comma-separated, the first encrypts and all decrypt.",
    )
    allow_anonymous: bool = Field(default=False, description="Serve other machines without a token.")
    document_cache: int = Field(default=256 << 20, ge=0, description="Bytes of metadata documents kept in memory.")
    body_limit: int = Field(default=64 << 20, ge=1024, description="Largest request body.")
    body_timeout: float = Field(default=60, gt=0, description="Seconds a request body may take to arrive.")
    idempotency_lifetime: int = Field(
        default=1800, ge=60, description="Seconds for which a repeated Idempotency-Key gives the first outcome."
    )
    commit_queue: int = Field(
        default=256, ge=1, description="Commits that may wait for one table before 429 is answered."
    )
    keep_alive: int = Field(default=75, ge=1, description="Seconds an idle connection is kept open.")
    shutdown_timeout: int = Field(
        default=20, ge=1, description="Seconds that running requests get when the server stops."
    )
    drain: float = Field(
        default=0,
        ge=0,
        le=600,
        description="Seconds between the signal to stop and the stop; `/health/ready` fails meanwhile, the rest works.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least severe log line."
    )
    log_format: Literal["text", "json"] = Field(default="text", description="Form of log lines.")
    log_sample: int = Field(
        default=100, ge=0, description="One in how many requests is logged; 1 = all, 0 = only failures and slow ones."
    )
    log_slow: float = Field(
        default=1.0, gt=0, description="Seconds after which a request counts as slow and is logged."
    )

    @field_validator("database_url")
    @classmethod
    def _known_database(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("sqlite:///", "postgresql://", "postgres://")):
            raise ValueError("must start with sqlite:/// or postgresql://")
        try:
            urlsplit(value or "")
        except ValueError:
            raise ValueError(
                "must be a URL: brackets stand around an IPv6 address, and odd characters of a password "
                "are percent-encoded"
            ) from None
        return value

    @field_validator("secret_key")
    @classmethod
    def _usable_keys(cls, value: SecretStr | None) -> SecretStr | None:
        for text in _keys(value):
            try:
                size = len(base64.b64decode(text, validate=True))
            except binascii.Error:
                size = 0
            if size != _KEY_BYTES:
                raise ValueError(f"must be {_KEY_BYTES} bytes as base64 (openssl rand -base64 32)")
        return value

    @property
    def secret_keys(self) -> tuple[bytes, ...]:
        """The keys of `secret_key`, the one that encrypts first."""
        return tuple(base64.b64decode(text) for text in _keys(self.secret_key))

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

    @property
    def secret(self) -> str | None:
        return None if self.token is None else self.token.get_secret_value()


def read_settings(given: Mapping[str, Any] | None = None) -> Settings:
    """Settings from the environment, overridden by `given` (command line); BadSettings with one clear line."""
    _refuse_misspelt(os.environ)
    try:
        return Settings(**{name: value for name, value in (given or {}).items() if value is not None})
    except ValidationError as error:
        raise BadSettings("; ".join(_line(fault) for fault in error.errors(include_input=False))) from None


def _line(fault: Any) -> str:
    variable = ENVIRONMENT_PREFIX + str(fault["loc"][0]).upper()
    text = str(fault["msg"]).removeprefix("Value error, ").replace("Input should be", "must be", 1)
    inside = "".join(f" ({part})" for part in fault["loc"][1:])
    return f"{variable}{inside} {text}"


def _refuse_misspelt(environment: Mapping[str, str]) -> None:
    """A variable that nearly is a setting is a mistake, and one in TOKEN would open the server.

    What is further off is left alone: Kubernetes, for one, sets ICEKEEL_SERVICE_HOST for a service of that name.
    """
    known = {name.upper() for name in Settings.model_fields} | CLIENT_VARIABLES
    for variable in environment:
        if not variable.startswith(ENVIRONMENT_PREFIX):
            continue
        name = variable.removeprefix(ENVIRONMENT_PREFIX)
        meant = [] if name in known else difflib.get_close_matches(name, known, n=1, cutoff=0.85)
        if meant:
            raise BadSettings(f"{variable}: no such setting; did you mean {ENVIRONMENT_PREFIX}{meant[0]}?")
