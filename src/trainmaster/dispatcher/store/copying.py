"""Copying a whole database into an empty one of another kind, and comparing both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from sqlalchemy import Column, Connection, Table, func, select, text

from trainmaster.dispatcher.store import schema
from trainmaster.dispatcher.store.connection import Database
from trainmaster.dispatcher.store.statements import PreparedInsert
from trainmaster.job.errors import WorkspaceException

Tell = Callable[[str, int, int], None]
"""Called with the name of a table, how many of its rows are done, and how many it has."""

_ROWS_AT_ONCE = 5000
_MODULUS = 1 << 128


@dataclass(frozen=True)
class Content:
    """What a table contains: as many rows with the same digest are the same rows, in any order."""

    count: int = 0
    digest: int = 0


def copy(source: Database, target: Database, tell: Tell) -> dict[str, Content]:
    """Copy all rows and numbering in one transaction, and return what was read. `target` has empty tables."""
    found = {}
    with source.read() as origin, target.write() as destination:
        for table in schema.metadata.sorted_tables:
            found[table.name] = _copy_table(origin, destination, table, tell)
            column = table.autoincrement_column
            if column is not None:
                _set_highest(destination, column, find_highest(origin, column))
    return found


def verify(target: Database, expected: dict[str, Content], tell: Tell) -> None:
    """Read everything back. An error if it is not what was copied."""
    with target.read() as connection:
        for table in schema.metadata.sorted_tables:
            content, total = Content(), expected[table.name].count
            for rows in read_rows(connection, table):
                content = add_rows(content, rows)
                tell(table.name, content.count, total)
            if content != expected[table.name]:
                raise WorkspaceException(
                    f"the copy of the table {table.name} differs from the original",
                    cause=f"It has {content.count} rows; {total} were copied.",
                    hint="The workspace was not changed. Try again.",
                )


def is_empty(database: Database) -> bool:
    """Whether no table has a row."""
    with database.read() as connection:
        return not any(connection.execute(select(table).limit(1)).first() for table in schema.metadata.sorted_tables)


def _copy_table(origin: Connection, destination: Connection, table: Table, tell: Tell) -> Content:
    total = origin.execute(select(func.count()).select_from(table)).scalar_one()
    insert = PreparedInsert(table.insert(), [column.name for column in table.columns])
    content = Content()
    for rows in read_rows(origin, table):
        insert.run(destination, rows)
        content = add_rows(content, rows)
        tell(table.name, content.count, total)
    return content


def read_rows(connection: Connection, table: Table) -> Iterator[list[tuple[Any, ...]]]:
    # In the order of their keys: a run comes after its parent.
    statement = select(table).order_by(*table.primary_key.columns)
    found = connection.execute(statement, execution_options={"yield_per": _ROWS_AT_ONCE})
    for rows in found.partitions():
        yield [tuple(row) for row in rows]


def add_rows(content: Content, rows: list[tuple[Any, ...]]) -> Content:
    digest = content.digest
    for row in rows:
        # SQLite keeps no negative zero.
        plain = tuple(value + 0.0 if type(value) is float else value for value in row)
        digest += int.from_bytes(blake2b(repr(plain).encode(), digest_size=16).digest(), "big")
    return Content(content.count + len(rows), digest % _MODULUS)


def find_highest(connection: Connection, column: Column[Any]) -> int:
    """The highest number that a row of the table ever had, even if that row was deleted."""
    table = column.table
    highest = connection.execute(select(func.max(column))).scalar_one() or 0
    if connection.dialect.name == "postgresql":
        last, called = connection.execute(
            text(f"SELECT last_value, is_called FROM {_sequence(connection, column)}")
        ).one()
        return max(highest, last if called else 0)
    if not table.dialect_options["sqlite"]["autoincrement"]:
        return int(highest)
    noted = text("SELECT seq FROM sqlite_sequence WHERE name = :name")
    return max(highest, connection.execute(noted, {"name": table.name}).scalar() or 0)


def _set_highest(connection: Connection, column: Column[Any], highest: int) -> None:
    table = column.table
    if not highest:
        return
    if connection.dialect.name == "postgresql":
        connection.execute(
            text("SELECT setval(:name, :highest)"), {"name": _sequence(connection, column), "highest": highest}
        )
    elif table.dialect_options["sqlite"]["autoincrement"]:
        connection.execute(text("DELETE FROM sqlite_sequence WHERE name = :name"), {"name": table.name})
        values = {"name": table.name, "highest": highest}
        connection.execute(text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :highest)"), values)


def _sequence(connection: Connection, column: Column[Any]) -> str:
    values = {"table": column.table.name, "column": column.name}
    return str(connection.execute(text("SELECT pg_get_serial_sequence(:table, :column)"), values).scalar_one())
