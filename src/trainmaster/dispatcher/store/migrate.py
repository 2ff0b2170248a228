"""Bringing a database up to the newest revision. The only module that imports Alembic."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from trainmaster.job.errors import WorkspaceException

LOCATION = Path(__file__).parent / "migrations"


def configuration() -> Config:
    """Alembic's configuration, without a file for it."""
    config = Config()
    # ConfigParser would read a percent sign of the path as the begin of a reference.
    config.set_main_option("script_location", str(LOCATION).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


def upgrade(path: Path, hint: str = "") -> None:
    """Run the missing migrations on the database at `path`, all of them or none."""
    engine = create_engine("sqlite://", creator=lambda: _connect(path), poolclass=NullPool)
    config = configuration()
    try:
        with engine.connect() as connection:
            # Alembic's own BEGIN is none for SQLite; ours makes the schema change whole or not at all.
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            connection.commit()
    except Exception as error:  # whatever a migration stumbles over, the person gets one clear error
        raise WorkspaceException(
            f"{path} cannot be migrated; it was left as it is", cause=str(error), hint=hint
        ) from error
    finally:
        engine.dispose()


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    # A table that is made anew must not take along the rows that refer to it; SQLite's default, said aloud.
    connection.execute("PRAGMA foreign_keys = OFF")
    return connection
