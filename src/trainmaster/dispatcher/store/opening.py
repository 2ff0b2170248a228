"""Creating and opening a database: a file of SQLite, or a database of a PostgreSQL server."""

from __future__ import annotations

from pathlib import Path

from trainmaster.dispatcher.store import sqlite
from trainmaster.dispatcher.store.connection import Database


def create_database(place: Path | str) -> Database:
    """Create the database at `place`, which must not exist yet (as a file) or must be empty (on a server)."""
    if isinstance(place, Path):
        return sqlite.create_database(place)
    from trainmaster.dispatcher.store import postgresql

    return postgresql.create_database(place)


def open_database(place: Path | str) -> Database:
    """Open the database at `place`, migrating it if an older Trainmaster made it."""
    if isinstance(place, Path):
        return sqlite.open_database(place)
    from trainmaster.dispatcher.store import postgresql

    return postgresql.open_database(place)
