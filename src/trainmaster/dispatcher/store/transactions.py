"""Repositories, and the decorators that say in which transaction a method runs.

A decorated method gets the connection as its first argument; callers leave it out:

    class Facts(Repository):
        @writes
        def put(self, connection: Connection, key: str, value: Any) -> None: ...

    store.facts.put("answer", 42)

A method that is called inside a transaction of the same thread becomes part of that transaction, so repositories
may use each other. The outermost transaction decides how durable the result is.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection

from trainmaster.dispatcher.store.connection import Database, is_lost
from trainmaster.job.errors import WorkspaceException


class Repository:
    """Rows of one noun in the database of a workspace."""

    def __init__(self, database: Database) -> None:
        self._database = database


R = TypeVar("R", bound=Repository)
P = ParamSpec("P")
T = TypeVar("T")
Method = Callable[Concatenate[R, Connection, P], T]
Decorated = Callable[Concatenate[R, P], T]


def reads_once(method: Method[R, P, T]) -> Decorated[R, P, T]:
    """For a method that executes one prepared SELECT: it needs no transaction, which saves time."""
    return _run_in(Database.statement, False, method)


def reads(method: Method[R, P, T]) -> Decorated[R, P, T]:
    """Run the method in a read transaction."""
    return _run_in(Database.read, False, method)


def writes(method: Method[R, P, T]) -> Decorated[R, P, T]:
    """Run the method in a write transaction that is durable when it returns."""
    return _run_in(Database.write, True, method)


def writes_lazily(method: Method[R, P, T]) -> Decorated[R, P, T]:
    """Run the method in a write transaction that a power cut may undo."""
    return _run_in(Database.write_lazily, True, method)


def streams(method: Method[R, P, T]) -> Decorated[R, P, T]:
    """Run the method in one of many lazy write transactions in a row."""
    return _run_in(Database.stream, True, method)


def _run_in(
    begin: Callable[[Database], AbstractContextManager[Connection]], is_write: bool, method: Method[R, P, T]
) -> Decorated[R, P, T]:
    """Reading is repeated once on a new connection: the server may have been restarted since the last use."""

    @wraps(method)
    def call(self: R, /, *args: P.args, **kwargs: P.kwargs) -> T:
        database = self._database
        connection = database.open_transaction(is_write)
        if connection is not None:
            return method(self, connection, *args, **kwargs)
        try:
            with begin(database) as connection:
                return method(self, connection, *args, **kwargs)
        except WorkspaceException as error:
            if is_write or not is_lost(error):
                raise
            database.forget_connections()
        with begin(database) as connection:
            return method(self, connection, *args, **kwargs)

    return call
