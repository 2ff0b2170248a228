"""Transactions on a database: short, one writer at a time, readers beside it.

What differs between databases is in `sqlite.py` and `postgresql.py`.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from trainmaster.job.errors import WorkspaceException
from trainmaster.shared.store_version import StoreVersion


@dataclass(frozen=True)
class Engines:
    """What connects to the database, for each kind of transaction."""

    statement: Engine
    read: Engine
    write: Engine
    lazy_write: Engine
    stream: Engine


class Database(ABC):
    """A database and its open connections."""

    def __init__(self, engines: Engines) -> None:
        pools = {engine: Connections(engine) for engine in vars(engines).values()}
        self._pools: list[Connections] = list(pools.values())
        self._statements = pools[engines.statement]
        self._readers = pools[engines.read]
        self._writers = pools[engines.write]
        self._lazy_writers = pools[engines.lazy_write]
        self._streamers = pools[engines.stream]
        self._open = _OpenTransaction()
        # Without the lock, a second writer of this process would poll for SQLite's lock.
        self._one_writer = threading.Lock()
        self.version = 0
        """Another number after each write transaction."""
        self._published: StoreVersion | None = None

    def publish(self, version: StoreVersion) -> None:
        """From now on other processes can read in `version` whether something has changed."""
        with self._one_writer:
            self._published = version
            version.end_change()

    @abstractmethod
    def translate_errors(self) -> AbstractContextManager[None]:
        """Turn an error of the driver into one clear error, caused by a DBAPIError."""

    def statement(self) -> AbstractContextManager[Connection]:
        """A connection for one prepared SELECT, which sees one state of the database without a transaction."""
        return self._join(writes=False) or self._connect(self._statements)

    def read(self) -> AbstractContextManager[Connection]:
        """A transaction that sees one state of the database, even if others write."""
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
        """Like `write_lazily`, for many transactions in a row."""
        return self._join(writes=True) or self._write_stream()

    def open_transaction(self, writes: bool) -> Connection | None:
        """The connection of this thread's open transaction, which must be a writing one if `writes`."""
        if writes and self._open.connection is not None and not self._open.writes:
            raise RuntimeError("A read transaction cannot contain a write")
        return self._open.connection

    def check(self) -> bool:
        """Whether this process may still write. On a server, the right to write ends with the connection."""
        return True

    def forget_connections(self) -> None:
        """Close the idle connections of readers. Those to a server that was restarted are useless."""
        for connections in {self._statements, self._readers}:
            connections.close()

    def close(self) -> None:
        """Close all connections."""
        if self._published is not None:
            self._published.begin_change()
        for connections in self._pools:
            connections.close()

    def _join(self, writes: bool) -> AbstractContextManager[Connection] | None:
        """The transaction that this thread has open, if any: a transaction inside another one is part of it."""
        connection = self.open_transaction(writes)
        return nullcontext(connection) if connection is not None else None

    @contextmanager
    def _connect(self, connections: Connections) -> Iterator[Connection]:
        with self.translate_errors(), connections.borrow() as connection:
            yield connection

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        with self._connect(self._readers) as connection, connection.begin(), self._open.set(connection):
            yield connection

    @contextmanager
    def _write(self, connections: Connections) -> Iterator[Connection]:
        with (
            self._one_writer,
            self._count_change(),
            self._connect(connections) as connection,
            connection.begin(),
            self._open.set(connection, writes=True),
        ):
            yield connection

    @contextmanager
    def _count_change(self) -> Iterator[None]:
        """Whoever reads the same version before and after something else knows that nothing was written meanwhile."""
        if self._published is not None:
            self._published.begin_change()
        try:
            yield
        finally:
            self.version += 1
            if self._published is not None:
                self._published.end_change()

    def _write_stream(self) -> AbstractContextManager[Connection]:
        return self._write(self._streamers)


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


class Connections:
    """Open connections: each is used by one thread at a time, then by the next that asks.

    SQLAlchemy's own pool does more than is needed here, and takes a tenth of the time that a page of runs takes.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._idle: list[Connection] = []

    @contextmanager
    def borrow(self) -> Iterator[Connection]:
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._engine.connect()
        try:
            yield connection
        except BaseException:
            # Its state is unknown, so it is not used again.
            connection.close()
            raise
        self._idle.append(connection)

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()


class ConnectionLostError(DBAPIError):
    """The server of the database cannot be reached, or has closed the connection."""


def is_lost(error: BaseException | None) -> bool:
    """Whether `translate_errors` made this of a lost connection. Whether the last commit was done is unknown then."""
    return isinstance(error, WorkspaceException) and isinstance(error.__cause__, ConnectionLostError)


def is_trouble(error: BaseException) -> bool:
    """Whether `translate_errors` made this of an error of the database."""
    return isinstance(error, WorkspaceException) and isinstance(error.__cause__, DBAPIError)
