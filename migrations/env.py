"""Runs migrations on the connection that `app.store.migrations` opened, inside the transaction it began."""

from alembic import context

from app.store.schema import metadata

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=metadata,
    # SQLite cannot alter most things in place: its tables are rebuilt.
    render_as_batch=connection.dialect.name == "sqlite",
)
with context.begin_transaction():
    context.run_migrations()
