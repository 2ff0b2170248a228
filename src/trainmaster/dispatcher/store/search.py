"""Searching runs in our own language: filtered and sorted by anything, a page at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, Table, and_, exists, false, func, or_, select, true

from trainmaster.dispatcher.store.arguments import shorten
from trainmaster.dispatcher.store.conditions import METRIC_PARTS, Compiler, flatten, is_about, is_equality
from trainmaster.dispatcher.store.cursors import dump_cursor, load_cursor
from trainmaster.dispatcher.store.labels import PROPERTY, TAG
from trainmaster.dispatcher.store.run_columns import read_columns
from trainmaster.dispatcher.store.run_pages import Query, Segment, SortColumn, find_runs, link_to_run
from trainmaster.dispatcher.store.schema import arguments, metrics, run_labels, runs
from trainmaster.dispatcher.store.transactions import Repository, reads
from trainmaster.dispatcher.store.values import clean, name_index
from trainmaster.shared.filters import And, Condition, Field, Order, fields_of
from trainmaster.shared.records import RunPage

_MOST_PROBES = 8

_NEWEST_FIRST = (SortColumn(runs.c.seq, descending=True),)


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


class RunSearch(Repository):
    """Finds runs."""

    @reads
    def find(self, connection: Connection, search: Search, now: float) -> RunPage:
        """A page of runs, and the cursor of the next page if there may be one."""
        cursor = load_cursor(search.cursor, search.key)
        compiler = Compiler(connection, now, hides_indexes=search.order is not None)
        drivers = list(_list_drivers(compiler, search))
        query = Query(
            and_(_restrict(search), compiler.compile(search.condition)),
            _restrict(search),
            search.condition != And(),
            drivers,
            search.limit,
        )
        segments = _make_segments(search, compiler)
        found = find_runs(connection, query, segments, search.skip + search.limit, cursor)[search.skip :]
        rows = read_columns(connection, [each.seq for each in found], search.columns, now)
        following = dump_cursor(found[-1].cursor, search.key) if len(found) == search.limit else ""
        return RunPage(tuple(rows), following, _count(compiler, search) if search.counts else None)


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


def _make_segments(search: Search, compiler: Compiler) -> list[Segment]:
    order = search.order
    if order is None:
        return [Segment(_NEWEST_FIRST, true())]
    if order.field.kind == "column":
        value = compiler.sort_value(order.field)
        keys = _make_keys(compiler.exact(value), runs.c.seq, order)
        with_value = Segment(keys, value.is_not(None), has_experiment=order.field.name == "experiment")
        # Every run has an experiment.
        missing = false() if with_value.has_experiment else value.is_(None)
        return [with_value, Segment(_NEWEST_FIRST, missing)]
    return _sort_by_table(order, search.condition, compiler)


def _make_keys(value: ColumnElement[Any], seq: ColumnElement[Any], order: Order) -> tuple[SortColumn, ...]:
    return SortColumn(value, order.descending), SortColumn(seq, order.descending)


def _sort_by_table(order: Order, condition: Condition, compiler: Compiler) -> list[Segment]:
    table, is_named, values = _find_values(order.field, compiler)
    # What is said about the field itself limits how much of its index is read.
    same = [each for each in flatten(condition) if is_about(each, order.field)]
    is_meant = and_(is_named, *map(compiler.test_row, same))
    found = [
        Segment(_make_keys(value, table.c.run_seq, order), and_(is_meant, is_this), table, table.c.run_seq)
        for value, is_this in values
    ]
    if any(each.field == order.field for each in same):
        # Such a condition is false for a run without a value.
        return found
    has_value = select(table.c.run_seq).where(is_named, or_(*(is_this for _, is_this in values)))
    missing = ~exists(has_value.where(link_to_run(table)).correlate(runs))
    return [*found, Segment(_NEWEST_FIRST, missing)]


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
