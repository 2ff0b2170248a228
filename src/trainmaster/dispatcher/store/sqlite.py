"""A database in a file of SQLite: all that only SQLite needs."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from trainmaster.dispatcher.store import schema
from trainmaster.dispatcher.store.connection import Database, Engines
from trainmaster.job.agent import durable
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
    sqlite3.SQLITE_CANTOPEN: ("cannot be opened", "Check that the file is there and may be read and written."),
    sqlite3.SQLITE_IOERR: ("cannot be read or written", "Check the disk and the free space on it."),
    sqlite3.SQLITE_CORRUPT: ("is damaged", _RESTORE),
    sqlite3.SQLITE_NOTADB: ("is not a database", _RESTORE),
}


class SqliteDatabase(Database):
    """One file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._streamed = 0
        engine = _make_engine(path)
        super().__init__(
            Engines(
                statement=engine,
                read=engine,
                write=engine.execution_options(writes=True),
                lazy_write=_make_engine(path, synchronous="NORMAL").execution_options(writes=True),
                stream=_make_engine(path, "NORMAL", log_pages=0).execution_options(writes=True),
            )
        )

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Name the file, what happened to it, and what to do."""
        try:
            yield
        except (DBAPIError, sqlite3.Error) as error:
            _raise_clearly(self.path, error)
            raise

    @contextmanager
    def _write_stream(self) -> Iterator[Connection]:
        with self._write(self._streamers) as connection:
            yield connection
        self._streamed += 1
        if self._streamed % _CHECKPOINT_AFTER == 0:
            # A PASSIVE checkpoint makes no other transaction wait.
            with self._connect(self._streamers) as connection:
                connection.connection.cursor().execute("PRAGMA wal_checkpoint(PASSIVE)").close()


def create_database(path: Path) -> SqliteDatabase:
    """Create a database in the file `path`: complete, or not at all."""
    if path.exists():
        raise WorkspaceException(f"{path} exists already", hint="Open it, or choose another folder.")
    unfinished = path.with_name(path.name + ".new")
    try:
        _discard(unfinished)
        # Only the owner may read metrics and options of a workspace.
        unfinished.touch(mode=0o600)
        _migrate(unfinished)
        unfinished.rename(path)
        durable.flush_one(path.parent)
    except OSError as error:
        raise WorkspaceException(
            f"{path} cannot be created",
            cause=str(error),
            hint="Check the folder, its permissions and the free space.",
        ) from None
    finally:
        _discard(unfinished)
    return SqliteDatabase(path)


def open_database(path: Path) -> SqliteDatabase:
    """Open the database in the file `path`. A database of an older Trainmaster is copied, then migrated."""
    from trainmaster.dispatcher.store.sqlite_inspection import read_revision

    database = SqliteDatabase(path)
    with database.translate_errors():
        revision = read_revision(path)
    if schema.is_older(revision, str(path)):
        copy = path.with_name(f"{path.name}.before-{schema.REVISION}")
        with database.translate_errors():
            _copy(path, copy)
        _migrate(path, f"The database as it was is in {copy.name}.")
    return database


def _raise_clearly(path: Path, error: DBAPIError | sqlite3.Error) -> None:
    driver_error = error.orig if isinstance(error, DBAPIError) else error
    # The low byte is the primary code; the rest refines it.
    trouble = _TROUBLES.get(getattr(driver_error, "sqlite_errorcode", 0) & 0xFF)
    if trouble is not None:
        what, hint = trouble
        cause = error if isinstance(error, DBAPIError) else DBAPIError(None, None, error)
        raise WorkspaceException(f"{path} {what}", cause=f"SQLite says: {driver_error}", hint=hint) from cause


def _make_engine(path: Path, synchronous: str = "FULL", log_pages: int = _LOG_PAGES) -> Engine:
    # mode=rw: a missing file is an error, not a new empty database.
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


def _copy(path: Path, copy: Path) -> None:
    unfinished = copy.with_name(copy.name + ".new")
    try:
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(unfinished)) as destination:
            source.backup(destination)
            # One file, not three: a person may have to move the copy back.
            destination.execute("PRAGMA journal_mode = DELETE")
        unfinished.replace(copy)
        durable.flush_one(copy.parent)
    finally:
        _discard(unfinished)


def _migrate(path: Path, hint: str = "") -> None:
    # Alembic takes long to import, and is hardly ever needed.
    from trainmaster.dispatcher.store.migrate import upgrade

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        # SQLite's default, made explicit: replacing a table must not delete the rows that refer to it.
        connection.execute("PRAGMA foreign_keys = OFF")
        return connection

    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool)
    # Alembic begins no transaction with SQLite; this one makes the migration whole or undone.
    upgrade(engine, str(path), hint, begin="BEGIN IMMEDIATE")


def _discard(path: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
