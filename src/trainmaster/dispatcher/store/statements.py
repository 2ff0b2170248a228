"""Statements that are compiled once and return plain tuples, so that a row costs no more than the driver needs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeVar

from sqlalchemy import (
    BigInteger,
    Boolean,
    ColumnElement,
    Connection,
    Float,
    Insert,
    Integer,
    Select,
    SmallInteger,
    String,
    Update,
    any_,
    bindparam,
    func,
    select,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.engine.interfaces import DBAPICursor, Dialect
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.types import TypeEngine

T = TypeVar("T")

COPY_ROWS = 8
"""COPY takes longer than executemany for fewer rows."""

_COPIED_TYPES: Sequence[tuple[type[TypeEngine[Any]], str]] = (
    (Boolean, "bool"),
    (BigInteger, "int8"),
    (SmallInteger, "int2"),
    (Integer, "int4"),
    (Float, "float8"),
    (String, "text"),
)
"""What COPY calls the types of columns. The first that fits counts: BIGINT is also an Integer."""

_MOST_VARIABLES = 500
"""Older versions of SQLite accept 999 variables in a statement."""


class _Prepared:
    """A statement that is compiled once for each kind of database."""

    def __init__(self, statement: Select[Any] | Update | Insert, columns: Sequence[str] = ()) -> None:
        self._statement = statement
        self._columns = tuple(columns)
        self._compiled: dict[str, SQLCompiler] = {}
        self._constants: dict[str, dict[str, Any]] = {}

    def _compile(self, dialect: Dialect) -> SQLCompiler:
        compiled = self._compiled.get(dialect.name)
        if compiled is None:
            made = self._statement.compile(dialect=dialect, column_keys=self._columns or None)
            assert isinstance(made, SQLCompiler)
            said = made.construct_params(_check=False)
            needed = {made.bind_names[bind] for bind in made.bind_names if bind.required}
            self._constants[dialect.name] = {name: value for name, value in said.items() if name not in needed}
            compiled = self._compiled[dialect.name] = made
        return compiled

    def _execute(self, connection: Connection, values: Mapping[str, Any]) -> DBAPICursor:
        compiled = self._compile(connection.dialect)
        # Constants of the statement, such as a limit, are computed once.
        parameters = {**self._constants[connection.dialect.name], **values}
        cursor = connection.connection.cursor()
        if compiled.positional:
            cursor.execute(compiled.string, [parameters[name] for name in compiled.positiontup or ()])
        else:
            cursor.execute(compiled.string, parameters)
        return cursor


class PreparedSelect(_Prepared):
    """A select with named parameters that returns plain tuples.

    Only for columns that the driver returns unchanged: text, numbers, NULL.
    """

    def rows(self, connection: Connection, **values: Any) -> Sequence[tuple[Any, ...]]:
        """All rows for these parameter values."""
        cursor = self._execute(connection, values)
        found: Sequence[tuple[Any, ...]] = cursor.fetchall()
        cursor.close()
        return found

    def blocks(self, connection: Connection, size: int, **values: Any) -> Iterator[list[tuple[Any, ...]]]:
        """All rows, `size` at a time, so that they are never in memory together."""
        cursor = self._execute(connection, values)
        while found := cursor.fetchmany(size):
            yield list(found)
        cursor.close()

    def row(self, connection: Connection, **values: Any) -> tuple[Any, ...] | None:
        """The first row, or None."""
        found = self.rows(connection, **values)
        return found[0] if found else None


class PreparedChange(_Prepared):
    """An update or insert of one row, with named parameters."""

    def run(self, connection: Connection, **values: Any) -> int:
        """Run the statement, and return how many rows it changed."""
        cursor = self._execute(connection, values)
        touched: int = cursor.rowcount
        cursor.close()
        return touched


class PreparedInsert(_Prepared):
    """An insert of many rows, each a tuple in the order of `columns`."""

    def __init__(self, statement: Insert, columns: Sequence[str]) -> None:
        super().__init__(statement, columns)
        names = ", ".join(f'"{name}"' for name in columns)
        self._copy = f'COPY "{statement.table.name}" ({names}) FROM STDIN (FORMAT BINARY)'
        self._types = [_name_copied_type(statement.table.c[name].type) for name in columns]

    def run(self, connection: Connection, rows: list[tuple[Any, ...]]) -> None:
        """Insert all `rows`."""
        if not rows:
            return
        if connection.dialect.name == "postgresql" and len(rows) >= COPY_ROWS:
            self._copy_in(connection, rows)
            return
        compiled = self._compile(connection.dialect)
        cursor = connection.connection.cursor()
        if compiled.positional:
            assert tuple(compiled.positiontup or ()) == self._columns, "columns in the order of the table"
            self._insert_together(cursor, compiled.string, rows)
        else:
            cursor.executemany(compiled.string, [dict(zip(self._columns, row, strict=True)) for row in rows])
        cursor.close()

    def _insert_together(self, cursor: DBAPICursor, statement: str, rows: list[tuple[Any, ...]]) -> None:
        """Many rows per statement: SQLite needs a third less time for points than with executemany alone."""
        together = _MOST_VARIABLES // len(self._columns)
        rest = len(rows) % together
        if len(rows) > rest:
            one = statement[statement.rindex("(") :]
            several = statement + f", {one}" * (together - 1)
            flat = list(chain.from_iterable(rows[: len(rows) - rest]))
            size = together * len(self._columns)
            for start in range(0, len(flat), size):
                cursor.execute(several, flat[start : start + size])
        cursor.executemany(statement, rows[len(rows) - rest :])

    def _copy_in(self, connection: Connection, rows: list[tuple[Any, ...]]) -> None:
        """PostgreSQL's own way for many rows: `python -m benchmarks.postgresql` compares it with executemany."""
        cursor: Any = connection.connection.cursor()
        with cursor.copy(self._copy) as copy:
            copy.set_types(self._types)
            for row in rows:
                copy.write_row(row)
        cursor.close()


def _name_copied_type(column: TypeEngine[Any]) -> str:
    return next(name for kind, name in _COPIED_TYPES if isinstance(column, kind))


def is_one_of(column: ColumnElement[Any], parameter: str, dialect: Dialect) -> ColumnElement[bool]:
    """Whether a column has one of many values, as one parameter: `list_value` makes it."""
    if dialect.name == "postgresql":
        return column == any_(bindparam(parameter, type_=ARRAY(column.type)))
    values = func.json_each(bindparam(parameter)).table_valued("value")
    return column.in_(select(values.c.value))


def list_value(values: Sequence[Any], dialect: Dialect) -> Any:
    """The parameter of `is_one_of`."""
    return list(values) if dialect.name == "postgresql" else json.dumps(list(values))


def chunks(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """`items` in parts that fit as variables into one statement."""
    for start in range(0, len(items), _MOST_VARIABLES):
        yield items[start : start + _MOST_VARIABLES]
