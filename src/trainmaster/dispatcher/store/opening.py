"""Creating and opening a database: a file of SQLite, or a schema of a PostgreSQL database."""

from __future__ import annotations

from pathlib import Path

from trainmaster.dispatcher.store import sqlite
from trainmaster.dispatcher.store.connection import Database
from trainmaster.shared.database_address import DatabaseAddress

Place = Path | DatabaseAddress | str
"""A file, a schema of a PostgreSQL database, or the URL of such a database."""


def create_database(place: Place) -> Database:
    """Create the database at `place`, which must not exist yet (as a file) or must be empty (on a server)."""
    if isinstance(place, Path):
        return sqlite.create_database(place)
    from trainmaster.dispatcher.store import postgresql

    return postgresql.create_database(_address(place))


def open_database(place: Place) -> Database:
    """Open the database at `place`, migrating it if an older Trainmaster made it."""
    if isinstance(place, Path):
        return sqlite.open_database(place)
    from trainmaster.dispatcher.store import postgresql

    return postgresql.open_database(_address(place))


def _address(place: DatabaseAddress | str) -> DatabaseAddress:
    return DatabaseAddress(place) if isinstance(place, str) else place
