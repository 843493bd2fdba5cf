"""Database URLs."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.errors import BadSettings
from app.store.urls import PostgresUrl, SqliteUrl, parse


def test_three_slashes_are_relative_and_four_absolute() -> None:
    """As SQLAlchemy reads them; percent signs are decoded."""
    assert parse("sqlite:////a/b.db") == SqliteUrl(Path("/a/b.db"))
    assert parse("sqlite:///b/c.db") == SqliteUrl(Path.cwd() / "b/c.db")
    assert parse("sqlite:////a/b%20c.db") == SqliteUrl(Path("/a/b c.db"))


@pytest.mark.parametrize("url", [
    "", "x", "sqlite:", "sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite://host/x", "sqlite:////a.db?mode=ro",
    "mysql://h/d", "postgresql+psycopg://h/d", "postgresql", "postgresql://h/d?statement_cache_size=many",
    "postgresql://[::1/d",
])  # fmt: skip
def test_anything_else_is_a_wrong_setting(url: str) -> None:
    """One clear line, before anything is opened."""
    with pytest.raises(BadSettings):
        parse(url)


def test_the_cache_option_is_ours_and_the_others_go_to_the_driver() -> None:
    """`statement_cache_size=0` is taken out of the URL; everything else stays."""
    url = parse("postgres://u:p%40w@h:5433/d?sslmode=require&statement_cache_size=0&application_name=x%20y")
    assert url == PostgresUrl("postgresql://u:p%40w@h:5433/d?sslmode=require&application_name=x+y", False)
    plain = parse("postgresql://h/d")
    assert plain == PostgresUrl("postgresql://h/d", True)


def test_a_url_is_shown_without_its_password() -> None:
    """Messages name host and database only."""
    url = parse("postgresql://user:secret@db.example:5433/catalog?password=secret")
    assert isinstance(url, PostgresUrl)
    assert url.shown == "db.example/catalog"
