"""A database on a PostgreSQL server: all that only PostgreSQL needs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import NullPool

from trainmaster.dispatcher.store import schema
from trainmaster.dispatcher.store.connection import Database, Engines
from trainmaster.job.errors import WorkspaceException

try:
    import psycopg
except ImportError as error:
    raise WorkspaceException(
        "PostgreSQL needs the package psycopg", cause=str(error), hint="Run `pip install 'psycopg[binary]'`."
    ) from error

# Transactions of other processes that write wait for this lock, as they do with SQLite.
_WRITE_LOCK = 0x7261696E
_CHECK = "Check that the server is running and has free space, and that the address and the password are right."


class PostgresqlDatabase(Database):
    """One database of a server."""

    def __init__(self, url: str) -> None:
        self.shown = _show(url)
        engine = _make_engine(url)
        # A lazy commit returns before it is on the disk of the server.
        lazy = _listening(_make_engine(url, "-c synchronous_commit=off"))
        super().__init__(
            Engines(
                statement=engine.execution_options(isolation_level="AUTOCOMMIT"),
                read=engine.execution_options(isolation_level="REPEATABLE READ"),
                write=_listening(_make_engine(url)),
                lazy_write=lazy,
                stream=lazy,
            )
        )

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Name the database and say what is wrong."""
        try:
            yield
        except (DBAPIError, psycopg.Error) as error:
            driver_error = error.orig if isinstance(error, DBAPIError) else error
            if not isinstance(driver_error, psycopg.OperationalError):
                raise
            cause = error if isinstance(error, DBAPIError) else DBAPIError(None, None, error)
            raise WorkspaceException(
                f"the database {self.shown} cannot be used", cause=f"PostgreSQL says: {driver_error}", hint=_CHECK
            ) from cause


def create_database(url: str) -> PostgresqlDatabase:
    """Create the tables in an empty database."""
    database = PostgresqlDatabase(url)
    with database.translate_errors():
        if _read_revision(url) is not None:
            raise WorkspaceException(
                f"the database {database.shown} is in use already", hint="Open it, or choose another database."
            )
        _migrate(url)
    return database


def open_database(url: str) -> PostgresqlDatabase:
    """Open a database; one of an older Trainmaster is migrated."""
    database = PostgresqlDatabase(url)
    with database.translate_errors():
        revision = _read_revision(url)
        if revision is None:
            raise WorkspaceException(
                f"the database {database.shown} is not a Trainmaster database",
                cause=f"It has no table {schema.VERSION_TABLE}.",
                hint="Check the address of the database.",
            )
        if schema.is_older(revision, f"the database {database.shown}"):
            _migrate(url)
    return database


def _show(url: str) -> str:
    try:
        return make_url(url).render_as_string(hide_password=True)
    except ArgumentError:
        raise WorkspaceException("the address of the database is not a URL") from None


def _make_engine(url: str, options: str = "") -> Engine:
    address = make_url(url).set(drivername="postgresql+psycopg")
    arguments = {"options": options} if options else {}
    return create_engine(address, connect_args=arguments, poolclass=NullPool)


def _listening(engine: Engine) -> Engine:
    event.listen(engine, "begin", _lock_out_writers)
    return engine


def _lock_out_writers(connection: Connection) -> None:
    connection.connection.cursor().execute(f"SELECT pg_advisory_xact_lock({_WRITE_LOCK})").close()


def _read_revision(url: str) -> str | None:
    engine = _make_engine(url)
    try:
        with engine.connect() as connection:
            if not inspect(connection).has_table(schema.VERSION_TABLE):
                return None
            row = connection.execute(text(f"SELECT version_num FROM {schema.VERSION_TABLE}")).one_or_none()
            return str(row[0]) if row else schema.NEVER_MIGRATED
    finally:
        engine.dispose()


def _migrate(url: str) -> None:
    # Alembic takes long to import, and is hardly ever needed.
    from trainmaster.dispatcher.store.migrate import upgrade

    upgrade(_make_engine(url), f"the database {_show(url)}", "The database was not changed.")
