"""Alembic migrations of the catalog's database; a wheel carries them as `icekeel_migrations`."""
