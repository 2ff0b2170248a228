"""Connections to the database file. All that only SQLite needs is here and in `inspection`."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from trainmaster.job.errors import WorkspaceException

BUSY_SECONDS = 10.0
"""How long a write waits for another process that holds the database, such as a person's `sqlite3` shell."""

# A transaction that finds this many pages in the write-ahead log copies them into the file (a checkpoint), while other
# transactions wait. A stream makes its checkpoints earlier, after this many transactions.
_LOG_PAGES = 8000
_CHECKPOINT_AFTER = 64

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
        self._lazy_writers = _Connections(_make_engine(path, synchronous="NORMAL").execution_options(writes=True))
        self._streamers = _Connections(_make_engine(path, "NORMAL", log_pages=0).execution_options(writes=True))
        self._streamed = 0
        self._open = _OpenTransaction()
        # Without the lock, SQLite makes a second writer of this process poll.
        self._one_writer = threading.Lock()

    def statement(self) -> AbstractContextManager[Connection]:
        """A connection for one prepared SELECT, which sees one state of the database without a transaction."""
        return self._join(writes=False) or self._connect(self._readers)

    def read(self) -> AbstractContextManager[Connection]:
        """A transaction that sees one state of the database, whatever is written meanwhile."""
        return self._join(writes=False) or self._read()

    def write(self) -> AbstractContextManager[Connection]:
        """A write transaction: when it returns, all of it is durable; if it raises, nothing was changed."""
        return self._join(writes=True) or self._write(self._writers)

    def write_lazily(self) -> AbstractContextManager[Connection]:
        """Like `write`, but a power cut may undo it, together with everything written after it.

        It survives the death of any process, and the next `write` brings it to the disk.
        """
        return self._join(writes=True) or self._write(self._lazy_writers)

    def stream(self) -> AbstractContextManager[Connection]:
        """Like `write_lazily`, for many transactions in a row: the write-ahead log does not grow meanwhile."""
        return self._join(writes=True) or self._stream()

    def _join(self, writes: bool) -> AbstractContextManager[Connection] | None:
        """The transaction that this thread has open, if any: a transaction inside another one is part of it."""
        connection = self.open_transaction(writes)
        return nullcontext(connection) if connection is not None else None

    def open_transaction(self, writes: bool) -> Connection | None:
        """The connection of this thread's open transaction, which must be a writing one if `writes`."""
        if writes and self._open.connection is not None and not self._open.writes:
            raise RuntimeError("A read transaction cannot contain a write")
        return self._open.connection

    @contextmanager
    def _connect(self, connections: _Connections) -> Iterator[Connection]:
        with translated(self.path), connections.one() as connection:
            yield connection

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        with translated(self.path), self._readers.one() as connection, connection.begin(), self._open.set(connection):
            yield connection

    @contextmanager
    def _write(self, connections: _Connections) -> Iterator[Connection]:
        with (
            self._one_writer,
            translated(self.path),
            connections.one() as connection,
            connection.begin(),
            self._open.set(connection, writes=True),
        ):
            yield connection

    @contextmanager
    def _stream(self) -> Iterator[Connection]:
        with self._write(self._streamers) as connection:
            yield connection
        self._streamed += 1
        if self._streamed % _CHECKPOINT_AFTER == 0:
            # PASSIVE: nobody waits for it.
            with self._connect(self._streamers) as connection:
                connection.connection.cursor().execute("PRAGMA wal_checkpoint(PASSIVE)").close()

    def close(self) -> None:
        """Close all connections; the last one folds the write-ahead log into the file."""
        self._readers.close()
        self._writers.close()
        self._lazy_writers.close()
        self._streamers.close()


class _OpenTransaction(threading.local):
    """The transaction that the current thread has open."""

    connection: Connection | None = None
    writes = False

    @contextmanager
    def set(self, connection: Connection, writes: bool = False) -> Iterator[None]:
        self.connection, self.writes = connection, writes
        try:
            yield
        finally:
            self.connection = None


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
