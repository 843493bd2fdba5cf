"""Named values of statements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sqlalchemy import BindParameter, bindparam
from sqlalchemy.sql.expression import Executable

DialectInsert = Callable[..., Any]
"""A dialect's own INSERT, which knows ON CONFLICT."""

Expression = Executable | Callable[[DialectInsert], Executable]

PREFIX: Final = "p_"


def param(name: str) -> BindParameter[Any]:
    """A named value of a statement.

    The prefix keeps names apart from columns: SQLAlchemy reserves bare column names in UPDATE and INSERT.
    """
    return bindparam(PREFIX + name)
