"""A database on a PostgreSQL server: all that only PostgreSQL needs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

import psycopg
from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.exc import DBAPIError, PendingRollbackError

from trainmaster.dispatcher.store import schema
from trainmaster.dispatcher.store.connection import ConnectionLostError, Connections, Database, Engines
from trainmaster.dispatcher.store.sessions import make_engine, make_write_engine
from trainmaster.job.errors import WorkspaceException
from trainmaster.shared.database_address import DatabaseAddress

log = logging.getLogger("trainmaster.dispatch")

_CHECK = "Check that the server is running and has free space, and that the address and the password are right."
# The server is stopping, was killed, or is starting.
_SHUTDOWN_STATES = ("57P01", "57P02", "57P03")


class PostgresqlDatabase(Database):
    """One schema of a database.

    All writing goes through one connection, which holds the lock of the database. When it is lost, every further write
    fails: another process may have the lock already. Then the database has to be opened again.
    """

    def __init__(self, address: DatabaseAddress) -> None:
        self.address = address
        engine = make_engine(address)
        write = make_write_engine(address)
        super().__init__(
            Engines(
                statement=engine.execution_options(isolation_level="AUTOCOMMIT"),
                read=engine.execution_options(isolation_level="REPEATABLE READ"),
                write=write,
                # Flushed as well: when the server is killed, agents go on, and what they rely on must be there.
                lazy_write=write,
                stream=write,
            )
        )
        self._writer = _Writer(write)
        self._pools.append(self._writer)
        self._writers = self._lazy_writers = self._streamers = self._writer

    def take_lock(self) -> None:
        """Connect for writing. An error if another process may write."""
        with self.translate_errors(), self._one_writer, self._writer.borrow():
            pass

    def translate_errors(self) -> AbstractContextManager[None]:
        """Name the database and say what is wrong."""
        return _translate_errors(self.address)

    def check(self) -> bool:
        """Whether this process still holds the lock. Asks the server, unless a transaction is doing so."""
        if not self._one_writer.acquire(blocking=False):
            return True
        try:
            with self.translate_errors(), self._writer.borrow() as connection:
                connection.execute(text("SELECT 1"))
                connection.rollback()
        except WorkspaceException:
            return False
        finally:
            self._one_writer.release()
        return True

    @contextmanager
    def _write_stream(self) -> Iterator[Connection]:
        with self._write(self._writer) as connection:
            # What is lost if the server is killed is read from the journals again.
            connection.connection.cursor().execute("SET LOCAL synchronous_commit = off").close()
            yield connection


class _Writer(Connections):
    """The one connection for writing. It is used again after an error, unless it is lost."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._connection: Connection | None = None

    @contextmanager
    def borrow(self) -> Iterator[Connection]:
        if self._connection is None:
            self._connection = self._engine.connect()
        elif self._connection.closed or self._connection.invalidated:
            raise psycopg.OperationalError("the connection that held the right to write is lost")
        try:
            yield self._connection
        except BaseException:
            if not _is_usable(self._connection):
                with suppress(DBAPIError, psycopg.Error):
                    self._connection.invalidate()
            raise

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


def create_database(address: DatabaseAddress) -> PostgresqlDatabase:
    """Create the tables in a schema, which is created if it does not exist."""
    database = PostgresqlDatabase(address)
    try:
        database.take_lock()
        with database.translate_errors():
            if _read_revision(address) is not None:
                raise WorkspaceException(
                    f"the database {address} is in use already", hint="Open it, or choose another database."
                )
            _create_schema(address)
            _migrate(address)
    except BaseException:
        database.close()
        raise
    return database


def open_database(address: DatabaseAddress) -> PostgresqlDatabase:
    """Open a database; one of an older Trainmaster is migrated."""
    database = PostgresqlDatabase(address)
    try:
        database.take_lock()
        with database.translate_errors():
            revision = _read_revision(address)
            if revision is None:
                raise WorkspaceException(
                    f"the database {address} is not a Trainmaster database",
                    cause=f"It has no table {schema.VERSION_TABLE}.",
                    hint="Check the address of the database.",
                )
            if schema.is_older(revision, f"the database {address}"):
                _migrate(address)
                # A migration may have filled tables or indexes, and searches are slow without statistics on them.
                gather_statistics(address)
    except BaseException:
        database.close()
        raise
    return database


def has_store(address: DatabaseAddress) -> bool:
    """Whether the schema contains a store."""
    with _translate_errors(address):
        return _read_revision(address) is not None


@contextmanager
def _translate_errors(address: DatabaseAddress) -> Iterator[None]:
    try:
        yield
    except (DBAPIError, psycopg.Error, PendingRollbackError) as error:
        driver_error = error.orig if isinstance(error, DBAPIError) else error
        lost = _is_lost(driver_error)
        if not lost and not isinstance(driver_error, psycopg.OperationalError):
            raise
        kind = ConnectionLostError if lost else DBAPIError
        raise WorkspaceException(
            f"the database {address} cannot be used", cause=f"PostgreSQL says: {driver_error}", hint=_CHECK
        ) from kind(None, None, driver_error or error)


def _is_lost(error: BaseException | None) -> bool:
    """Whether the connection ended, or none could be made."""
    if isinstance(error, psycopg.InterfaceError | PendingRollbackError):
        # The connection was lost earlier, in the same transaction.
        return True
    if not isinstance(error, psycopg.OperationalError):
        return False
    state = error.sqlstate or ""
    return not state or state.startswith("08") or state in _SHUTDOWN_STATES


def _is_usable(connection: Connection) -> bool:
    if connection.closed or connection.invalidated:
        return False
    driver = connection.connection.driver_connection
    return (
        isinstance(driver, psycopg.Connection)
        and not driver.closed
        and driver.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    )


def gather_statistics(address: DatabaseAddress) -> None:
    """Let PostgreSQL count what is in the tables. Until it has, it may choose plans that take a hundred times as long.

    It does so by itself within minutes, if its autovacuum is on.
    """
    _maintain(address, "ANALYZE")


def tidy_tables(address: DatabaseAddress) -> None:
    """As `gather_statistics`; and let PostgreSQL note that all rows are visible, so that it reads indexes only."""
    _maintain(address, "VACUUM ANALYZE")


def _maintain(address: DatabaseAddress, command: str) -> None:
    names = ", ".join(f'"{table.name}"' for table in schema.metadata.sorted_tables)
    engine = make_engine(address)
    try:
        with engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
            connection.execute(text(f"{command} {names}"))
    except DBAPIError as error:
        # Everything works without it.
        log.warning("%s of the database %s failed: %s", command, address, error.orig)
    finally:
        engine.dispose()


def rename_schema(address: DatabaseAddress, name: str) -> None:
    """Give the schema another name: nobody uses it any more, and a person may need it."""
    with _translate_errors(address):
        _execute(address, f"ALTER SCHEMA {address.schema} RENAME TO {name}")


def drop_schema(address: DatabaseAddress) -> None:
    """Delete the schema with everything in it."""
    with _translate_errors(address):
        _execute(address, f"DROP SCHEMA {address.schema} CASCADE")


def _create_schema(address: DatabaseAddress) -> None:
    if not address.schema:
        return
    try:
        _execute(address, f"CREATE SCHEMA IF NOT EXISTS {address.schema}")
    except DBAPIError as error:
        if not isinstance(error.orig, psycopg.errors.InsufficientPrivilege):
            raise
        raise WorkspaceException(
            f"no schema can be created in the database {address}",
            cause=f"PostgreSQL says: {error.orig}",
            hint="An administrator allows it with: GRANT CREATE ON DATABASE <database> TO <user>.",
        ) from None


def _execute(address: DatabaseAddress, statement: str) -> None:
    engine = make_engine(address)
    try:
        with engine.begin() as connection:
            connection.execute(text(statement))
    finally:
        engine.dispose()


def _read_revision(address: DatabaseAddress) -> str | None:
    engine = make_engine(address)
    try:
        with engine.connect() as connection:
            if not inspect(connection).has_table(schema.VERSION_TABLE, schema=address.schema or None):
                return None
            row = connection.execute(text(f"SELECT version_num FROM {schema.VERSION_TABLE}")).one_or_none()
            return str(row[0]) if row else schema.NEVER_MIGRATED
    finally:
        engine.dispose()


def _migrate(address: DatabaseAddress) -> None:
    # Alembic takes long to import, and is hardly ever needed.
    from trainmaster.dispatcher.store.migrate import upgrade

    upgrade(make_engine(address), f"the database {address}", "The database was not changed.")
