"""Finding a page of runs, whatever language says which.

A page is found in one of two ways. If one of the conditions holds for few runs, and an index says which, these are
read and sorted. Otherwise an index is read in the order of the page until enough runs are found. If that takes too
long, because the conditions hold for few runs together, the first way is taken after all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Join,
    Select,
    String,
    Table,
    and_,
    false,
    func,
    literal,
    or_,
    select,
    true,
    tuple_,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler

from trainmaster.dispatcher.store.cursors import Cursor, wrong_cursor
from trainmaster.dispatcher.store.schema import experiments, runs

_WALKS = (1000, 5000)
"""So many rows of an index are read in order, one number after the other, before the other way is tried."""
_MANY = 100_000
"""Conditions that hold for more runs are not read instead."""
_FEW = 1000

Predicate = ColumnElement[bool]


@dataclass(frozen=True)
class SortColumn:
    """One of the things that runs are sorted by."""

    value: ColumnElement[Any]
    descending: bool

    @property
    def turned(self) -> ColumnElement[Any]:
        """The column in the direction of the order."""
        return self.turn(self.value)

    def turn(self, value: ColumnElement[Any]) -> ColumnElement[Any]:
        """A column with the same values, in the direction of the order."""
        return value.desc() if self.descending else value.asc()


@dataclass(frozen=True)
class Segment:
    """Runs that are sorted by the same columns: those with a number come before those with a text or no value."""

    keys: tuple[SortColumn, ...]
    """No two runs have the same values in all of them. NULL only comes after a column that tells it from values."""
    where: Predicate
    table: Table | None = None
    """The table that has the first key, if it is not that of runs."""
    seq: ColumnElement[Any] = runs.c.seq
    has_experiment: bool = False
    """Whether a key is the name of the experiment."""


@dataclass(frozen=True)
class Query:
    """Which runs are searched."""

    condition: Predicate
    """All conditions, `restriction` included."""
    restriction: Predicate
    """What is asked of each run while an index is read in order: it holds for most of them."""
    has_condition: bool
    """Whether `condition` is more than `restriction`."""
    drivers: Sequence[Select[Any]]
    """Rows of indexes. Each of them has all runs that are searched, and more."""
    limit: int
    """How many runs a page has."""


@dataclass(frozen=True)
class Found:
    """A run, and what it is sorted by."""

    segment: int
    keys: tuple[Any, ...]
    seq: int

    @property
    def cursor(self) -> Cursor:
        """Where a page ends that has this run last."""
        return Cursor(self.segment, self.keys)


class _Join(Join):
    """A join that SQLite does from left to right; it guesses badly without statistics."""

    inherit_cache = True


@compiles(_Join, "sqlite")
def _compile_join(join: _Join, compiler: SQLCompiler, **options: Any) -> str:
    options["asfrom"] = True
    left, right = (compiler.process(each, **options) for each in (join.left, join.right))
    assert join.onclause is not None
    link = compiler.process(join.onclause, from_linter=options.get("from_linter"))
    return f"{left} CROSS JOIN {right} ON {link}"


def find_runs(
    connection: Connection, query: Query, segments: Sequence[Segment], most: int, cursor: Cursor | None
) -> list[Found]:
    """The first runs after a cursor, `most` at most."""
    finder = _Finder(connection, query, cursor)
    found: list[Found] = []
    for number, segment in enumerate(segments):
        if len(found) < most and (cursor is None or number >= cursor.segment):
            found += finder.find(number, segment, most - len(found))
    return found


class _Finder:
    """Finds the runs of a query after a cursor."""

    def __init__(self, connection: Connection, query: Query, cursor: Cursor | None) -> None:
        self._connection = connection
        self._query = query
        self._cursor = cursor
        newest = select(func.max(runs.c.seq))
        is_counted = query.has_condition or bool(query.drivers)
        self._runs = int(connection.execute(newest).scalar() or 0) if is_counted else 0
        # Reading the runs of a condition takes as long as their number n. Reading in order takes as long as it
        # takes to meet `limit` of them, which are n of all: that is longer if n is below the root of all x limit.
        rare = self._find_rare(math.isqrt(self._runs * query.limit))
        self._few: Select[Any] | None = rare[0][1] if rare else None
        self._is_empty = bool(rare) and rare[0][0] == 0

    def find(self, number: int, segment: Segment, most: int) -> list[Found]:
        """The first runs of a segment."""
        if self._is_empty:
            return []
        if self._few is not None:
            return self._pick(number, segment, most)
        if not self._query.has_condition or self._runs <= _WALKS[0]:
            return self._walk(number, segment, most)
        for longest in _WALKS:
            found = self._walk(number, segment, most, longest)
            if len(found) == most:
                return found
            if len(found) * _WALKS[-1] < most * longest:
                # At this rate the longest walk would not find enough either.
                break
        rare = [driver for _, driver in self._find_rare(min(self._runs, _MANY))[:2]]
        self._few = self._read_both(*rare) if len(rare) == 2 else rare[0] if rare else None
        return self._walk(number, segment, most) if self._few is None else self._pick(number, segment, most)

    def _read_both(self, one: Select[Any], other: Select[Any]) -> Select[Any]:
        """The runs of two conditions: their numbers, if they are few. Each segment reads them again."""
        # PostgreSQL merges two indexes for this. INTERSECT would hash both, which takes three times as long.
        both = one.where(one.selected_columns[0].in_(other.correlate(None)))
        found = list(self._connection.execute(both.limit(_FEW + 1)).scalars())
        return select(runs.c.seq).where(runs.c.seq.in_(found)) if len(found) <= _FEW else both

    def _find_rare(self, most: int) -> list[tuple[int, Select[Any]]]:
        """The conditions that hold for at most so many runs: how many, and the rows of their indexes. Rarest first."""
        found: list[tuple[int, Select[Any]]] = []
        for driver in self._query.drivers:
            counted = driver.limit(most + 1).subquery()
            count = int(self._connection.execute(select(func.count()).select_from(counted)).scalar_one())
            if count <= most:
                found.append((count, driver))
            if count < self._query.limit:
                break
        return sorted(found, key=lambda each: each[0])

    def _pick(self, number: int, segment: Segment, most: int) -> list[Found]:
        """Reads the runs of the rarest condition, and sorts them."""
        assert self._few is not None
        few = self._few.cte("few").prefix_with("MATERIALIZED", dialect="postgresql")
        table: FromClause = _Join(few, runs, few.c[0] == runs.c.seq)
        if segment.table is not None:
            table = _Join(table, segment.table, link_to_run(segment.table))
        rows = self._select(number, segment, table).where(self._query.condition)
        return self._read(number, self._sort(rows, segment).limit(most))

    def _walk(self, number: int, segment: Segment, most: int, longest: int = 0) -> list[Found]:
        """Reads runs in the order of the segment, `longest` at most."""
        table: FromClause = runs
        if segment.table is not None:
            table = segment.table.join(runs, link_to_run(segment.table))
        if not longest:
            rows = self._select(number, segment, table).where(self._query.condition)
            return self._read(number, self._sort(rows, segment).limit(most))
        ahead = self._sort(self._select(number, segment, table).where(self._query.restriction), segment)
        first = ahead.limit(longest).subquery("first")
        kept = select(*first.c).select_from(_Join(first, runs, first.c.run_seq == runs.c.seq))
        order = [key.turn(value) for key, value in zip(segment.keys, first.c, strict=False)]
        return self._read(number, kept.where(self._query.condition).order_by(*order).limit(most))

    def _select(self, number: int, segment: Segment, table: FromClause) -> Select[Any]:
        if segment.has_experiment:
            table = table.join(experiments, experiments.c.seq == runs.c.experiment_seq)
        keys = [key.value.label(f"key_{place}") for place, key in enumerate(segment.keys)]
        rows = select(*keys, segment.seq.label("run_seq")).select_from(table)
        return rows.where(segment.where, self._come_after(number, segment))

    def _sort(self, rows: Select[Any], segment: Segment) -> Select[Any]:
        return rows.order_by(*(key.turned for key in segment.keys))

    def _read(self, number: int, rows: Select[Any]) -> list[Found]:
        return [Found(number, tuple(keys), seq) for *keys, seq in self._connection.execute(rows)]

    def _come_after(self, number: int, segment: Segment) -> Predicate:
        if self._cursor is None or self._cursor.segment != number:
            return true()
        values = self._cursor.keys
        if len(values) != len(segment.keys):
            raise wrong_cursor()
        for key, value in zip(segment.keys, values, strict=True):
            if value is not None and isinstance(value, str) != isinstance(key.value.type, String):
                raise wrong_cursor()
        if len({key.descending for key in segment.keys}) == 1 and None not in values:
            return _compare_all(segment.keys, values)
        return _compare_each(segment.keys, values)


def _compare_all(keys: Sequence[SortColumn], values: Sequence[Any]) -> Predicate:
    """Whether a run comes after the values, if all columns are sorted in the same direction."""
    here: ColumnElement[Any] = keys[0].value
    there: ColumnElement[Any] = literal(values[0], keys[0].value.type)
    if len(keys) > 1:
        here = tuple_(*(key.value for key in keys))
        there = tuple_(*(literal(value, key.value.type) for key, value in zip(keys, values, strict=True)))
    return here < there if keys[0].descending else here > there


def _compare_each(keys: Sequence[SortColumn], values: Sequence[Any]) -> Predicate:
    """Whether a run comes after the values, in whatever directions."""
    after: Predicate = false()
    for key, value in reversed(list(zip(keys, values, strict=True))):
        if value is None:
            after = and_(key.value.is_(None), after)
        else:
            bound = literal(value, key.value.type)
            is_later = key.value < bound if key.descending else key.value > bound
            after = or_(is_later, and_(key.value == bound, after))
    first, value = keys[0], values[0]
    if value is None:
        return after
    # For the index: the rest of the condition does not limit how much of it is read.
    bound = literal(value, first.value.type)
    return and_(first.value <= bound if first.descending else first.value >= bound, after)


def link_to_run(table: Table) -> Predicate:
    """Joins a table with its runs."""
    return table.c.run_seq == runs.c.seq
