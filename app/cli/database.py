"""`icekeel db`: the database schema."""

from __future__ import annotations

import typer

from app.cli.codes import FOUND
from app.cli.options import Form, Home
from app.cli.output import show
from app.main import migrate, schema_state
from app.settings import read_settings

app = typer.Typer(name="db", help="Database schema: upgrade, current, check.")


@app.command()
def upgrade(home: Home = None, form: Form = "text") -> None:
    """Bring the database to the schema of this server."""
    settings = read_settings({"home": home})
    settings.make_home()
    migrate(settings.database)
    current(home, form)


@app.command()
def current(home: Home = None, form: Form = "text") -> str:
    """Print the schema the database stands at."""
    state = schema_state(read_settings({"home": home}).database)
    value = {"current": state.current, "head": state.head, "status": state.status}
    show(form, value, f"{state.current or '(empty)'}: {state.status} (this server speaks {state.head})")
    return state.status


@app.command()
def check(home: Home = None, form: Form = "text") -> None:
    """Exit 1 unless the database has the schema of this server."""
    if current(home, form) != "current":
        raise typer.Exit(FOUND)
