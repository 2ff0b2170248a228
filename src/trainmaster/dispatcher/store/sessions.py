"""Connections to a PostgreSQL server: how they are made, and who holds the right to write."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import NullPool

from trainmaster.dispatcher.store.leaders import LONGEST_HOST, Leader, OtherLeaderError
from trainmaster.job.errors import WorkspaceException
from trainmaster.shared.database_address import DatabaseAddress
from trainmaster.shared.host import host_name
from trainmaster.shared.retry import Backoff

try:
    import psycopg
except ImportError as error:
    raise WorkspaceException(
        "PostgreSQL needs the package psycopg", cause=str(error), hint="Run `pip install 'trainmaster[postgresql]'`."
    ) from error

ERRORS = (DBAPIError, psycopg.Error)
"""What the functions here raise if the server cannot be asked."""

# A dead machine is noticed after about 5 + 3 * 2 seconds, on both sides of the connection.
_KEEPALIVES = {"keepalives": 1, "keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3}
_SERVER_KEEPALIVES = (
    "-c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3 -c tcp_user_timeout=11000"
)
_CONNECT_SECONDS = 10
# The connection of a process that was just killed is closed within milliseconds.
_LOCK_SECONDS = 1.0
_APPLICATION = "trainmaster"

# The name of the application is visible if both sessions have the same user.
_HOLDER = text(
    "SELECT activity.application_name, extract(epoch FROM activity.backend_start), activity.pid"
    " FROM pg_locks locks JOIN pg_stat_activity activity ON activity.pid = locks.pid"
    " WHERE locks.locktype = 'advisory' AND locks.granted AND locks.objsubid = 1"
    " AND locks.classid::bigint = :high AND locks.objid::bigint = :low"
    " AND locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)

_RUNS_THERE = text(
    "SELECT 1 FROM runs WHERE ended_at IS NULL AND nodes <> ''"
    " AND target NOT IN (SELECT name FROM targets WHERE engine <> 'local') LIMIT 1"
)
_WANTS = "wants to write to"


def make_engine(address: DatabaseAddress) -> Engine:
    """For reading, and for migrations."""
    try:
        url = make_url(address.url).set(drivername="postgresql+psycopg")
    except ArgumentError:
        raise WorkspaceException("the address of the database is not a URL") from None
    options = [str(url.query["options"])] if "options" in url.query else []
    options.append(_SERVER_KEEPALIVES)
    if address.schema:
        options.append(f"-c search_path={address.schema}")
    arguments: dict[str, Any] = {
        **_KEEPALIVES,
        "tcp_user_timeout": 11_000,
        "connect_timeout": _CONNECT_SECONDS,
        "application_name": f"{_APPLICATION} {os.getpid()}@{host_name()[:LONGEST_HOST]}",
        "options": " ".join(options),
    }
    address_only = url.difference_update_query(["options"])
    # A connection is closed after use: a rollback first would only fail if it is lost.
    return create_engine(address_only, connect_args=arguments, poolclass=NullPool, pool_reset_on_return=None)


def make_write_engine(address: DatabaseAddress) -> Engine:
    """Connects once, and gets the lock of the database with it: whoever has this connection is the only one to write.

    It never connects a second time. Another process may have written in between, so everything that this process
    knows has to be read again.
    """
    engine = make_engine(address)
    connected: list[bool] = []

    def connect(dialect: Any, record: Any, arguments: list[Any], parameters: dict[str, Any]) -> Any:
        if connected:
            raise psycopg.OperationalError("the connection that held the right to write is lost")
        connection = dialect.connect(*arguments, **parameters)
        try:
            _take_lock(connection, address)
        except BaseException:
            connection.close()
            raise
        connected.append(True)
        return connection

    event.listen(engine, "do_connect", connect)
    return engine


def lock_key(address: DatabaseAddress, purpose: str = "writes to") -> int:
    """The number of a lock in the database: 63 bits of a digest, because locks have no names."""
    digest = sha256(f"trainmaster {purpose} {address.schema}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def find_leader(address: DatabaseAddress) -> Leader | None:
    """The process that may write now, by the lock itself: it is never out of date."""
    engine = make_engine(address)
    try:
        with engine.connect() as connection:
            row = _find_holder(connection, lock_key(address))
    finally:
        engine.dispose()
    return None if row is None else _read_leader(str(row[0] or ""), float(row[1] or 0))


def is_wanted(address: DatabaseAddress) -> bool:
    """Whether another machine is taking over from the dispatcher that had the lock (`Candidacy`)."""
    engine = make_engine(address)
    try:
        with engine.connect() as connection:
            return _find_holder(connection, lock_key(address, _WANTS)) is not None
    finally:
        engine.dispose()


class Candidacy:
    """Takes the lock away from a dispatcher that cannot be reached, for the one that is started next.

    It is a lock as well. While it is held, the dispatcher that lost its connection does not try to get it back.
    """

    def __init__(self, address: DatabaseAddress) -> None:
        self._engine = make_engine(address)
        self._connection = self._engine.connect()
        try:
            key = {"key": lock_key(address, _WANTS)}
            self.is_held = bool(self._connection.execute(text("SELECT pg_try_advisory_lock(:key)"), key).scalar())
            holder = _find_holder(self._connection, lock_key(address))
            if self.is_held and holder is not None:
                self._connection.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": holder[2]})
            self._connection.commit()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """The new dispatcher has the lock, or could not be started."""
        self._connection.close()
        self._engine.dispose()


def has_runs_there(address: DatabaseAddress) -> bool:
    """Whether active runs are on the machine of the dispatcher itself: they would end without it."""
    engine = make_engine(address)
    try:
        with engine.connect() as connection:
            return connection.execute(_RUNS_THERE).first() is not None
    finally:
        engine.dispose()


def _find_holder(connection: Connection, key: int) -> tuple[Any, ...] | None:
    """The name, begin and process on the server of the session that holds a lock."""
    row = connection.execute(_HOLDER, {"high": key >> 32, "low": key & 0xFFFFFFFF}).first()
    return None if row is None else tuple(row)


def find_abandoned(addresses: Sequence[DatabaseAddress]) -> list[DatabaseAddress]:
    """Those of several schemas of one database in which runs or services are active, but which nobody may write to."""
    engine = make_engine(replace(addresses[0], schema=""))
    try:
        with engine.connect() as connection:
            return [address for address in addresses if _is_abandoned(connection, address)]
    finally:
        engine.dispose()


def _is_abandoned(connection: Connection, address: DatabaseAddress) -> bool:
    key = lock_key(address)
    if _find_holder(connection, key) is not None:
        return False
    runs = f"{address.schema}.runs"
    if connection.execute(text("SELECT to_regclass(:name)"), {"name": runs}).scalar() is None:
        return False
    return (
        connection.execute(text(f"SELECT 1 FROM {runs} WHERE ended_at IS NULL AND type <> 'mlflow' LIMIT 1")).first()
        is not None
    )


def _take_lock(connection: Any, address: DatabaseAddress) -> None:
    deadline, backoff = time.monotonic() + _LOCK_SECONDS, Backoff(0.01, 0.1)
    while not connection.execute("SELECT pg_try_advisory_lock(%s)", [lock_key(address)]).fetchone()[0]:
        connection.rollback()
        if time.monotonic() > deadline:
            raise OtherLeaderError(str(address), find_leader(address))
        backoff.block()
    connection.rollback()


def _read_leader(application: str, since: float) -> Leader:
    pid, _, host = application.removeprefix(_APPLICATION).strip().partition("@")
    return Leader(host, int(pid) if pid.isdecimal() else 0, since)
