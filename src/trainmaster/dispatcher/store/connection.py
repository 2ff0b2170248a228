"""Connections to the database file. All that only SQLite needs is here and in `inspection`."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from trainmaster.job.errors import WorkspaceException

BUSY_SECONDS = 10.0
"""How long a write waits for another process that holds the database, such as a person's `sqlite3` shell."""

# A transaction that finds so many pages in the write-ahead log folds it into the file, and others wait. Streams of
# transactions do so earlier, every so many of them.
_LOG_PAGES = 8000
_FOLD_AFTER = 64

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
        engine = _make_engine(path)
        self._readers = _Connections(engine)
        self._writers = _Connections(engine.execution_options(writes=True))
        self._jotters = _Connections(_make_engine(path, synchronous="NORMAL").execution_options(writes=True))
        self._streamers = _Connections(_make_engine(path, "NORMAL", log_pages=0).execution_options(writes=True))
        self._streamed = 0
        # SQLite would make a second writer of this process wait by polling; this way it waits in line.
        self._one_writer = threading.Lock()

    @contextmanager
    def glancing(self) -> Iterator[Connection]:
        """A connection for one prepared statement, which sees one state of the database by itself."""
        with translated(self.path), self._readers.one() as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that sees one state of the database, whatever is written meanwhile."""
        with translated(self.path), self._readers.one() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A connection in a write transaction: all of it is durable afterwards, or none."""
        with (
            self._one_writer,
            translated(self.path),
            self._writers.one() as connection,
            connection.begin(),
        ):
            yield connection

    @contextmanager
    def jotting(self) -> Iterator[Connection]:
        """Like `writing`, but for a power cut: then it may be forgotten, with all that came after it.

        It survives the death of every process, and is on the disk with the next `writing`.
        """
        with (
            self._one_writer,
            translated(self.path),
            self._jotters.one() as connection,
            connection.begin(),
        ):
            yield connection

    @contextmanager
    def streaming(self) -> Iterator[Connection]:
        """Like `jotting`, for many transactions one after the other.

        Now and then the write-ahead log is folded into the file, while others read and write: they do not wait for it.
        """
        with (
            self._one_writer,
            translated(self.path),
            self._streamers.one() as connection,
            connection.begin(),
        ):
            yield connection
        self._streamed += 1
        if self._streamed % _FOLD_AFTER == 0:
            with translated(self.path), self._streamers.one() as connection:
                connection.connection.cursor().execute("PRAGMA wal_checkpoint(PASSIVE)").close()

    def close(self) -> None:
        """Close all connections; the last one folds the write-ahead log into the file."""
        self._readers.close()
        self._writers.close()
        self._jotters.close()
        self._streamers.close()


class _Connections:
    """Open connections: each is used by one thread at a time, then by the next that asks.

    SQLAlchemy's own pool does more than is needed here, at a tenth of the time that a page of runs takes.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._idle: list[Connection] = []

    @contextmanager
    def one(self) -> Iterator[Connection]:
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._engine.connect()
        try:
            yield connection
        except BaseException:
            # Whatever state it is in, nobody else gets it.
            connection.close()
            raise
        self._idle.append(connection)

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()


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


def is_trouble(error: BaseException) -> bool:
    """Whether this is what `translated` made of an error of the database."""
    return isinstance(error, WorkspaceException) and isinstance(error.__cause__, (DBAPIError, sqlite3.Error))


def _raise_clearly(path: Path, error: BaseException | None) -> None:
    # The low byte is the primary code; the rest refines it.
    trouble = _TROUBLES.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
    if trouble is not None:
        what, hint = trouble
        raise WorkspaceException(f"{path} {what}", cause=f"SQLite says: {error}", hint=hint) from error


def _make_engine(path: Path, synchronous: str = "FULL", log_pages: int = _LOG_PAGES) -> Engine:
    # mode=rw: a file that vanished is an error, not a new empty database.
    address = path.absolute().as_uri() + "?mode=rw"

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(
            address, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        _set_up(connection, synchronous, log_pages)
        return connection

    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool)
    event.listen(engine, "begin", _begin)
    return engine


def _set_up(connection: sqlite3.Connection, synchronous: str, log_pages: int) -> None:
    for pragma in (
        "journal_mode = WAL",
        f"synchronous = {synchronous}",  # FULL: a queued run must survive a power cut, not only a crash
        "foreign_keys = ON",
        "cache_size = -16000",
        f"wal_autocheckpoint = {log_pages}",
        "journal_size_limit = 67108864",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: Connection) -> None:
    # A transaction that reads first and writes later can be refused half-way; IMMEDIATE waits at its begin.
    writes = connection.get_execution_options().get("writes")
    connection.connection.cursor().execute("BEGIN IMMEDIATE" if writes else "BEGIN")
