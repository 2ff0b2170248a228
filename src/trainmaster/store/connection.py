"""Connections to the database file. All that only SQLite needs is here and in `inspection`."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool

from trainmaster.errors import WorkspaceException

BUSY_SECONDS = 10.0
"""How long a write waits for another process that holds the database, such as a person's `sqlite3` shell."""

_RESTORE = "Put back a copy of the file, or salvage it with `sqlite3 trainmaster.db .recover`."

# Primary result code of SQLite: what happened, and what to do now.
_TROUBLES = {
    sqlite3.SQLITE_FULL: ("has no room to grow: the disk is full", "Free some space, then try again."),
    sqlite3.SQLITE_BUSY: ("is locked by another program", "Close what has the file open, then try again."),
    sqlite3.SQLITE_LOCKED: ("is locked by another program", "Close what has the file open, then try again."),
    sqlite3.SQLITE_READONLY: ("cannot be written", "Check the permissions of the file and of its folder."),
    sqlite3.SQLITE_PERM: ("cannot be written", "Check the permissions of the file and of its folder."),
    sqlite3.SQLITE_CANTOPEN: (
        "cannot be opened",
        "Check that the file is there and may be read and written.",
    ),
    sqlite3.SQLITE_IOERR: ("cannot be read or written", "Check the disk and the free space on it."),
    sqlite3.SQLITE_CORRUPT: ("is damaged", _RESTORE),
    sqlite3.SQLITE_NOTADB: ("is not a database", _RESTORE),
}


class Database:
    """One database file: short transactions, one writer at a time, readers beside it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._engine = _make_engine(path)
        self._writer = self._engine.execution_options(writes=True)
        # SQLite would make a second writer of this process wait by polling; this way it waits in line.
        self._one_writer = threading.Lock()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that sees one state of the database, whatever is written meanwhile."""
        with translated(self.path), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A connection in a write transaction: all of it is durable afterwards, or none."""
        with self._one_writer, translated(self.path), self._writer.begin() as connection:
            yield connection

    def close(self) -> None:
        """Close all connections; the last one folds the write-ahead log into the file."""
        self._engine.dispose()


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn what goes wrong between us and the file into one clear error."""
    try:
        yield
    except DBAPIError as error:
        _raise_clearly(path, error.orig)
        raise
    except sqlite3.Error as error:
        _raise_clearly(path, error)
        raise


def _raise_clearly(path: Path, error: BaseException | None) -> None:
    # The low byte is the primary code; the rest refines it.
    trouble = _TROUBLES.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
    if trouble is not None:
        what, hint = trouble
        raise WorkspaceException(f"{path} {what}", cause=f"SQLite says: {error}", hint=hint) from error


def _make_engine(path: Path) -> Engine:
    # mode=rw: a file that vanished is an error, not a new empty database.
    address = path.absolute().as_uri() + "?mode=rw"

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(
            address, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        _set_up(connection)
        return connection

    engine = create_engine("sqlite://", creator=connect, poolclass=QueuePool, pool_size=4, max_overflow=28)
    event.listen(engine, "begin", _begin)
    return engine


def _set_up(connection: sqlite3.Connection) -> None:
    for pragma in (
        "journal_mode = WAL",
        "synchronous = FULL",  # a queued run must survive a power cut, not only a crash
        "foreign_keys = ON",
        "cache_size = -16000",
        "journal_size_limit = 67108864",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: Connection) -> None:
    # A transaction that reads first and writes later can be refused half-way; IMMEDIATE waits at its begin.
    writes = connection.get_execution_options().get("writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
