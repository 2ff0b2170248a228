"""Searching runs: filtered and sorted by anything, a page at a time.

A page is found in one of two ways. If one of the conditions holds for few runs, and an index says which, these are
read and sorted. Otherwise an index is read in the order of the page until enough runs are found. If that takes too
long, because the conditions hold for few runs together, the first way is taken after all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
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
    exists,
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

from trainmaster.dispatcher.store.arguments import shorten
from trainmaster.dispatcher.store.conditions import METRIC_PARTS, Compiler, flatten, is_about, is_equality
from trainmaster.dispatcher.store.cursors import Cursor, dump_cursor, load_cursor, wrong_cursor
from trainmaster.dispatcher.store.labels import PROPERTY, TAG
from trainmaster.dispatcher.store.run_columns import read_columns
from trainmaster.dispatcher.store.schema import arguments, experiments, metrics, run_labels, runs
from trainmaster.dispatcher.store.transactions import Repository, reads
from trainmaster.dispatcher.store.values import clean, name_index
from trainmaster.shared.filters import And, Condition, Field, Order, fields_of
from trainmaster.shared.records import RunPage

_WALKS = (1000, 5000)
"""So many rows of an index are read in order, one number after the other, before the other way is tried."""
_MANY = 100_000
"""Conditions that hold for more runs are not read instead."""
_FEW = 1000
_MOST_PROBES = 8

Found = tuple[Any, int]
"""What a run is sorted by, and its number."""


@dataclass(frozen=True)
class Search:
    """Which runs to find, in which order, and what of them."""

    condition: Condition
    order: Order | None = None
    """None: newest first."""
    columns: tuple[str, ...] = ("id",)
    limit: int = 100
    cursor: str = ""
    key: str = ""
    """A text that is the same for all pages of a search."""
    has_children: bool = False
    """Whether runs that have a parent are found too."""
    counts: bool = False
    """Whether all matches are counted, which takes longer than a page."""
    has_archived: bool = False
    """Whether archived runs are found too."""
    skip: int = 0
    """So many of the first runs after the cursor are left out."""


@dataclass(frozen=True)
class _Segment:
    """Runs that are sorted by the same column: those with a number come before those with a text or without a value."""

    value: ColumnElement[Any] | None
    """None: newest first."""
    where: ColumnElement[bool]
    descending: bool
    table: Table | None = None
    """The table that has the value, if it is not that of runs."""
    seq: ColumnElement[Any] = field(default=runs.c.seq)
    has_experiment: bool = False
    """Whether the value is the name of the experiment."""

    @property
    def keys(self) -> list[ColumnElement[Any]]:
        """The columns that sort the runs."""
        return [self.seq] if self.value is None else [self.value, self.seq]


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


class RunSearch(Repository):
    """Finds runs."""

    @reads
    def find(self, connection: Connection, search: Search, now: float) -> RunPage:
        """A page of runs, and the cursor of the next page if there may be one."""
        cursor = load_cursor(search.cursor, search.key)
        finder = _Finder(Compiler(connection, now, hides_indexes=search.order is not None), search, cursor)
        found: list[tuple[int, Found]] = []
        most = search.skip + search.limit
        for number, segment in enumerate(_make_segments(search, finder.compiler)):
            if len(found) < most and (cursor is None or number >= cursor.segment):
                found += [(number, row) for row in finder.find(number, segment, most - len(found))]
        found = found[search.skip :]
        rows = read_columns(connection, [seq for _, (_, seq) in found], search.columns, now)
        following = ""
        if len(found) == search.limit:
            number, (value, seq) = found[-1]
            following = dump_cursor(Cursor(number, value, seq), search.key)
        return RunPage(tuple(rows), following, _count(finder.compiler, search) if search.counts else None)


class _Finder:
    """Finds the runs that a search wants after a cursor."""

    def __init__(self, compiler: Compiler, search: Search, cursor: Cursor | None) -> None:
        self.compiler = compiler
        self._search = search
        self._cursor = cursor
        self._drivers = list(_list_drivers(compiler, search))
        self._condition = and_(_restrict(search), compiler.compile(search.condition))
        has_condition = search.condition != And() or bool(self._drivers)
        newest = select(func.max(runs.c.seq))
        self._runs = int(compiler.connection.execute(newest).scalar() or 0) if has_condition else 0
        # Reading the runs of a condition takes as long as their number n. Reading in order takes as long as it
        # takes to meet `limit` of them, which are n of all: that is longer if n is below the root of all x limit.
        rare = self._find_rare(math.isqrt(self._runs * search.limit))
        self._few: Select[Any] | None = rare[0][1] if rare else None
        self._is_empty = bool(rare) and rare[0][0] == 0

    def find(self, number: int, segment: _Segment, most: int) -> list[Found]:
        """The first runs of a segment."""
        if self._is_empty:
            return []
        if self._few is not None:
            return self._pick(number, segment, most)
        if self._search.condition == And() or self._runs <= _WALKS[0]:
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
        found = list(self.compiler.connection.execute(both.limit(_FEW + 1)).scalars())
        return select(runs.c.seq).where(runs.c.seq.in_(found)) if len(found) <= _FEW else both

    def _find_rare(self, most: int) -> list[tuple[int, Select[Any]]]:
        """The conditions that hold for at most so many runs: how many, and the rows of their indexes. Rarest first."""
        found: list[tuple[int, Select[Any]]] = []
        for driver in self._drivers:
            counted = driver.limit(most + 1).subquery()
            count = int(self.compiler.connection.execute(select(func.count()).select_from(counted)).scalar_one())
            if count <= most:
                found.append((count, driver))
            if count < self._search.limit:
                break
        return sorted(found, key=lambda each: each[0])

    def _pick(self, number: int, segment: _Segment, most: int) -> list[Found]:
        """Reads the runs of the rarest condition, and sorts them."""
        assert self._few is not None
        few = self._few.cte("few").prefix_with("MATERIALIZED", dialect="postgresql")
        table: FromClause = _Join(few, runs, few.c[0] == runs.c.seq)
        if segment.table is not None:
            table = _Join(table, segment.table, _link(segment.table))
        return self._read(self._select(number, segment, table).where(self._condition), segment, most)

    def _walk(self, number: int, segment: _Segment, most: int, longest: int = 0) -> list[Found]:
        """Reads runs in the order of the segment, `longest` at most."""
        table: FromClause = runs
        if segment.table is not None:
            table = segment.table.join(runs, _link(segment.table))
        if not longest:
            return self._read(self._select(number, segment, table).where(self._condition), segment, most)
        ahead = self._sort(self._select(number, segment, table).where(_restrict(self._search)), segment)
        first = ahead.limit(longest).subquery("first")
        kept = select(first.c[0], first.c[1]).select_from(_Join(first, runs, first.c[1] == runs.c.seq))
        order = [first.c[0], first.c[1]] if segment.value is not None else [first.c[1]]
        statement = kept.where(self._condition).order_by(*(_turn(key, segment) for key in order)).limit(most)
        return [(value, seq) for value, seq in self.compiler.connection.execute(statement)]

    def _select(self, number: int, segment: _Segment, table: FromClause) -> Select[Any]:
        value = literal(None) if segment.value is None else segment.value
        if segment.has_experiment:
            table = table.join(experiments, experiments.c.seq == runs.c.experiment_seq)
        rows = select(value.label("value"), segment.seq.label("run_seq")).select_from(table)
        return rows.where(segment.where, self._come_after(number, segment))

    def _read(self, rows: Select[Any], segment: _Segment, most: int) -> list[Found]:
        found = self.compiler.connection.execute(self._sort(rows, segment).limit(most))
        return [(value, seq) for value, seq in found]

    def _sort(self, rows: Select[Any], segment: _Segment) -> Select[Any]:
        return rows.order_by(*(_turn(key, segment) for key in segment.keys))

    def _come_after(self, number: int, segment: _Segment) -> ColumnElement[bool]:
        if self._cursor is None or self._cursor.segment != number:
            return true()
        if segment.value is None:
            return segment.seq < self._cursor.seq if segment.descending else segment.seq > self._cursor.seq
        if isinstance(self._cursor.value, str) != isinstance(segment.value.type, String):
            raise wrong_cursor()
        here = tuple_(segment.value, segment.seq)
        there = tuple_(literal(self._cursor.value, segment.value.type), literal(self._cursor.seq))
        return here < there if segment.descending else here > there


def _turn(key: ColumnElement[Any], segment: _Segment) -> ColumnElement[Any]:
    return key.desc() if segment.descending else key.asc()


def _link(table: Table) -> ColumnElement[bool]:
    return table.c.run_seq == runs.c.seq


def _restrict(search: Search) -> ColumnElement[bool]:
    is_top = true() if _has_children(search) else runs.c.parent_id.is_(None)
    return is_top if _has_archived(search) else and_(is_top, runs.c.archived_at.is_(None))


def _has_children(search: Search) -> bool:
    return search.has_children or Field("column", "parent") in set(fields_of(search.condition))


def _has_archived(search: Search) -> bool:
    return search.has_archived or Field("column", "archived") in set(fields_of(search.condition))


def _list_drivers(compiler: Compiler, search: Search) -> Iterator[Select[Any]]:
    found = 0
    for condition in flatten(search.condition):
        # In the order of runs, an index on one of their columns is read in this order anyway.
        is_sorted = search.order is None and is_equality(condition)
        driver = None if is_sorted else compiler.find_driver(condition)
        if driver is not None and found < _MOST_PROBES:
            found += 1
            yield driver
    if search.order is not None and not _has_children(search):
        yield select(runs.c.seq).where(_restrict(search))


def _make_segments(search: Search, compiler: Compiler) -> list[_Segment]:
    order = search.order
    if order is None:
        return [_Segment(None, true(), descending=True)]
    if order.field.kind == "column":
        value = compiler.sort_value(order.field)
        with_value = _Segment(
            compiler.exact(value),
            value.is_not(None),
            order.descending,
            has_experiment=order.field.name == "experiment",
        )
        # Every run has an experiment.
        missing = false() if with_value.has_experiment else value.is_(None)
        return [with_value, _Segment(None, missing, descending=True)]
    return _sort_by_table(order, search.condition, compiler)


def _sort_by_table(order: Order, condition: Condition, compiler: Compiler) -> list[_Segment]:
    table, is_named, values = _find_values(order.field, compiler)
    # What is said about the field itself limits how much of its index is read.
    same = [each for each in flatten(condition) if is_about(each, order.field)]
    is_meant = and_(is_named, *map(compiler.test_row, same))
    found = [
        _Segment(value, and_(is_meant, is_this), order.descending, table, table.c.run_seq) for value, is_this in values
    ]
    if any(each.field == order.field for each in same):
        # Such a condition is false for a run without a value.
        return found
    has_value = select(table.c.run_seq).where(is_named, or_(*(is_this for _, is_this in values)))
    missing = ~exists(has_value.where(_link(table)).correlate(runs))
    return [*found, _Segment(None, missing, descending=True)]


def _find_values(
    field: Field, compiler: Compiler
) -> tuple[Table, ColumnElement[bool], list[tuple[ColumnElement[Any], ColumnElement[bool]]]]:
    """The table that has the values of a field, which rows of it, and the columns to sort by, each with its rows."""
    if field.kind == "argument":
        number = arguments.c.number
        is_named = arguments.c.name == shorten(field.name)
        return arguments, is_named, [(number, number.is_not(None)), (arguments.c.text, number.is_(None))]
    if field.kind == "metric":
        value = METRIC_PARTS[field.part]
        return metrics, metrics.c.name == name_index(clean(field.name)), [(value, value.is_not(None))]
    kind = TAG if field.kind == "tag" else PROPERTY
    is_named = (run_labels.c.kind == kind) & (run_labels.c.name == name_index(clean(field.name)))
    return run_labels, is_named, [(compiler.exact(run_labels.c.value), true())]


def _count(compiler: Compiler, search: Search) -> int:
    matches = compiler.compile(search.condition)
    statement = select(func.count()).select_from(runs).where(_restrict(search), matches)
    return int(compiler.connection.execute(statement).scalar_one())
