"""Searching runs: filtered and sorted by anything, a page at a time.

A page is found in one of two ways. If one of the conditions holds for few runs, and an index says which, these are
read, and sorted here. Otherwise an index is read in the order of the page, until enough runs are found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Select,
    Table,
    and_,
    exists,
    func,
    literal,
    or_,
    select,
    true,
    tuple_,
)

from trainmaster.dispatcher.store.arguments import shorten
from trainmaster.dispatcher.store.conditions import METRIC_PARTS, Compiler, flatten
from trainmaster.dispatcher.store.cursors import Cursor, dump_cursor, load_cursor
from trainmaster.dispatcher.store.labels import PROPERTY, TAG
from trainmaster.dispatcher.store.run_columns import read_columns
from trainmaster.dispatcher.store.schema import arguments, experiments, metrics, run_labels, runs
from trainmaster.dispatcher.store.statements import chunks
from trainmaster.dispatcher.store.transactions import Repository, reads
from trainmaster.dispatcher.store.values import clean
from trainmaster.shared.filters import Condition, Field, Order, fields_of
from trainmaster.shared.records import RunPage

_FEW = 2000
"""So many runs are read and sorted at once."""
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


@dataclass(frozen=True)
class _Segment:
    """Runs that are sorted by the same column: those with a number come before those with a text or without a value."""

    table: FromClause
    value: ColumnElement[Any] | None
    """None: newest first."""
    seq: ColumnElement[Any]
    where: ColumnElement[bool]
    descending: bool


class RunSearch(Repository):
    """Finds runs."""

    @reads
    def find(self, connection: Connection, search: Search, now: float) -> RunPage:
        """A page of runs, and the cursor of the next page if there may be one."""
        cursor = load_cursor(search.cursor, search.key)
        compiler = Compiler(connection, now, hides_indexes=search.order is not None)
        segments = _make_segments(search.order, compiler)
        few = _find_few(compiler, search)
        wanted = _Wanted(compiler, search, cursor)
        found: list[tuple[int, Found]] = []
        for number, segment in enumerate(segments):
            if len(found) < search.limit and (cursor is None or number >= cursor.segment):
                rows = wanted.pick(number, segment, few) if few is not None else wanted.walk(number, segment, found)
                found += [(number, row) for row in rows]
        found = found[: search.limit]
        columns = read_columns(connection, [seq for _, (_, seq) in found], search.columns, now)
        following = ""
        if len(found) == search.limit:
            number, (value, seq) = found[-1]
            following = dump_cursor(Cursor(number, value, seq), search.key)
        return RunPage(tuple(columns), following, _count(compiler, search) if search.counts else None)


@dataclass(frozen=True)
class _Wanted:
    """The runs that a search wants after a cursor."""

    compiler: Compiler
    search: Search
    cursor: Cursor | None

    def walk(self, number: int, segment: _Segment, before: Sequence[object]) -> list[Found]:
        """The first runs of a segment, read in their order."""
        statement = self._select(segment).where(self._come_after(number, segment))
        keys = [segment.seq.desc() if segment.descending else segment.seq.asc()]
        if segment.value is not None:
            keys.insert(0, segment.value.desc() if segment.descending else segment.value.asc())
        rows = self.compiler.connection.execute(statement.order_by(*keys).limit(self.search.limit - len(before)))
        return [(value, seq) for value, seq in rows]

    def pick(self, number: int, segment: _Segment, few: Sequence[int]) -> list[Found]:
        """The runs of a segment among these few."""
        found: list[Found] = []
        for part in chunks(few):
            rows = self.compiler.connection.execute(self._select(segment).where(runs.c.seq.in_(part)))
            found += [(value, seq) for value, seq in rows if self._comes_after(number, segment, value, seq)]
        return sorted(found, key=lambda row: _sort_key(segment, *row), reverse=segment.descending)

    def _select(self, segment: _Segment) -> Select[Any]:
        value = literal(None) if segment.value is None else segment.value
        mine = and_(segment.where, _restrict(self.search), self.compiler.compile(self.search.condition))
        return select(value, runs.c.seq).select_from(segment.table).where(mine)

    def _come_after(self, number: int, segment: _Segment) -> ColumnElement[bool]:
        if self.cursor is None or self.cursor.segment != number:
            return true()
        if segment.value is None:
            return segment.seq < self.cursor.seq if segment.descending else segment.seq > self.cursor.seq
        here = tuple_(segment.value, segment.seq)
        there = tuple_(literal(self.cursor.value, segment.value.type), literal(self.cursor.seq))
        return here < there if segment.descending else here > there

    def _comes_after(self, number: int, segment: _Segment, value: Any, seq: int) -> bool:
        if self.cursor is None or self.cursor.segment != number:
            return True
        here, there = _sort_key(segment, value, seq), _sort_key(segment, self.cursor.value, self.cursor.seq)
        return here < there if segment.descending else here > there


def _sort_key(segment: _Segment, value: Any, seq: int) -> tuple[Any, ...]:
    return (seq,) if segment.value is None else (value, seq)


def _restrict(search: Search) -> ColumnElement[bool]:
    return true() if _has_children(search) else runs.c.parent_id.is_(None)


def _has_children(search: Search) -> bool:
    return search.has_children or Field("column", "parent") in set(fields_of(search.condition))


def _find_few(compiler: Compiler, search: Search) -> list[int] | None:
    """The runs for which one of the conditions holds, if they are few."""
    best: list[int] | None = None
    for driver in _list_drivers(compiler, search):
        found = list(compiler.connection.execute(driver.limit(_FEW + 1)).scalars())
        if len(found) <= _FEW and (best is None or len(found) < len(best)):
            best = found
            if len(best) <= search.limit:
                break
    return None if best is None else list(dict.fromkeys(best))


def _list_drivers(compiler: Compiler, search: Search) -> Iterator[Select[Any]]:
    found = 0
    for condition in flatten(search.condition):
        driver = compiler.find_driver(condition)
        if driver is not None and found < _MOST_PROBES:
            found += 1
            yield driver
    if found and not _has_children(search):
        yield select(runs.c.seq).where(runs.c.parent_id.is_(None))


def _make_segments(order: Order | None, compiler: Compiler) -> list[_Segment]:
    if order is None:
        return [_Segment(runs, None, runs.c.seq, true(), descending=True)]
    if order.field.kind == "column":
        return _sort_by_column(order, compiler)
    return _sort_by_table(order, compiler)


def _sort_by_column(order: Order, compiler: Compiler) -> list[_Segment]:
    table: FromClause = runs.join(experiments) if order.field.name == "experiment" else runs
    value = compiler.sort_value(order.field)
    with_value = _Segment(table, compiler.exact(value), runs.c.seq, value.is_not(None), order.descending)
    return [with_value, _Segment(table, None, runs.c.seq, value.is_(None), descending=True)]


def _sort_by_table(order: Order, compiler: Compiler) -> list[_Segment]:
    field = order.field
    table, is_named, values = _find_values(field, compiler)
    joined = table.join(runs, table.c.run_seq == runs.c.seq)
    found = [
        _Segment(joined, value, table.c.run_seq, and_(is_named, is_this), order.descending) for value, is_this in values
    ]
    has_value = select(table.c.run_seq).where(is_named, or_(*(is_this for _, is_this in values)))
    missing = ~exists(has_value.where(table.c.run_seq == runs.c.seq).correlate(runs))
    return [*found, _Segment(runs, None, runs.c.seq, missing, descending=True)]


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
        return metrics, metrics.c.name == clean(field.name), [(value, value.is_not(None))]
    kind = TAG if field.kind == "tag" else PROPERTY
    is_named = (run_labels.c.kind == kind) & (run_labels.c.name == clean(field.name))
    return run_labels, is_named, [(compiler.exact(run_labels.c.value), true())]


def _count(compiler: Compiler, search: Search) -> int:
    matches = compiler.compile(search.condition)
    statement = select(func.count()).select_from(runs).where(_restrict(search), matches)
    return int(compiler.connection.execute(statement).scalar_one())
