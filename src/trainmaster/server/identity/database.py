"""The server's own database: a SQLite file, or the schema `trainmaster_server` of a PostgreSQL database."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from threading import Lock
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import QueuePool

from trainmaster.job.errors import WorkspaceException
from trainmaster.server.identity import schema
from trainmaster.server.identity.migrations import migrate

_BUSY_SECONDS = 10.0
_MIGRATION_LOCK = 0x746D7372


class ServerDatabase:
    """Transactions on the server's own tables. Every method blocks: call it in a thread.

    `write` is on the disk when it returns. `write_lazily` survives the end of the process at any moment, but not a
    power cut in the same second.
    """

    def __init__(self, durable: Engine, lazy: Engine, shown: str) -> None:
        self.shown = shown
        self._durable = durable
        self._lazy = lazy
        # SQLite has one writer at a time. Threads that wait here begin at once; those that wait in SQLite sleep.
        self._writing: AbstractContextManager[object] = Lock() if durable.dialect.name == "sqlite" else nullcontext()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that only reads."""
        with self._translate_errors(), self._lazy.connect() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that is undone if the block raises."""
        with self._translate_errors(), self._writing, self._durable.begin() as connection:
            yield connection

    @contextmanager
    def write_lazily(self) -> Iterator[Connection]:
        """A transaction whose commit does not wait for the disk."""
        writer = self._lazy.execution_options(writes=True)
        with self._translate_errors(), self._writing, writer.begin() as connection:
            yield connection

    def migrate(self) -> None:
        """Create the tables, or bring those of an older release up to date."""
        with self.write() as connection:
            if connection.dialect.name == "postgresql":
                # Two servers may start at the same time.
                connection.execute(text(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})"))
                connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {schema.SCHEMA}"))
            migrate(connection, self.shown)

    def close(self) -> None:
        """Close all connections."""
        self._durable.dispose()
        self._lazy.dispose()

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            if not _is_about_the_database(error):
                raise
            raise WorkspaceException(
                f"{self.shown} cannot be used",
                cause=f"The database says: {error.orig}",
                hint="Check that it can be reached and written, and that there is free space.",
            ) from error


def open_database(root: Path, url: str = "") -> ServerDatabase:
    """Open the database of a server, creating or migrating its tables.

    `url` is the address of a PostgreSQL database; without one it is the file `server.db` in the root folder.
    """
    database = _open_postgresql(url) if url else _open_sqlite(root / "server.db")
    try:
        database.migrate()
    except BaseException:
        database.close()
        raise
    return database


def _open_sqlite(path: Path) -> ServerDatabase:
    try:
        # The file is its owner's alone, whatever the umask is.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise WorkspaceException(
            f"{path} cannot be opened",
            cause=str(error),
            hint="Check the root folder, or run `trainmaster server init`.",
        ) from None
    durable = _make_sqlite_engine(path, "FULL").execution_options(writes=True)
    return ServerDatabase(durable, _make_sqlite_engine(path, "NORMAL"), str(path))


def _make_sqlite_engine(path: Path, synchronous: str) -> Engine:
    address = path.absolute().as_uri() + "?mode=rw"

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(
            address, uri=True, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        for pragma in ("journal_mode = WAL", f"synchronous = {synchronous}", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {pragma}")
        return connection

    engine = create_engine("sqlite://", creator=connect, poolclass=QueuePool, pool_size=8, max_overflow=8)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that reads first and writes later can be refused half-way; IMMEDIATE waits at its begin.
    writes = connection.get_execution_options().get("writes")
    connection.connection.cursor().execute("BEGIN IMMEDIATE" if writes else "BEGIN")


def _open_postgresql(url: str) -> ServerDatabase:
    try:
        address = make_url(url)
    except ArgumentError:
        raise WorkspaceException("the address of the server's database is not a URL") from None
    shown = f"the database {address.render_as_string(hide_password=True)}"
    durable = _make_postgresql_engine(address, shown, {})
    lazy = _make_postgresql_engine(address, shown, {"synchronous_commit": "off"})
    return ServerDatabase(durable, lazy, shown)


def _make_postgresql_engine(address: Any, shown: str, parameters: dict[str, str]) -> Engine:
    if address.get_backend_name() not in ("postgresql", "postgres"):
        raise WorkspaceException(f"{shown} is not a PostgreSQL database", hint="Use postgresql://host/name.")
    options = " ".join(f"-c {name}={value}" for name, value in {"search_path": schema.SCHEMA, **parameters}.items())
    try:
        return create_engine(
            address.set(drivername="postgresql+psycopg"),
            connect_args={"options": options},
            pool_size=8,
            max_overflow=8,
            # A restarted PostgreSQL must not fail the first request of every pooled connection.
            pool_pre_ping=True,
        )
    except ImportError as error:
        raise WorkspaceException(
            "PostgreSQL needs the package psycopg", cause=str(error), hint="Run `pip install 'trainmaster[server]'`."
        ) from None


def _is_about_the_database(error: DBAPIError) -> bool:
    """Whether it is the database that has a fault, and not the statement."""
    return error.connection_invalidated or type(error.orig).__name__ in ("OperationalError", "DatabaseError")
