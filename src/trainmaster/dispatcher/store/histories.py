"""The values of a metric in the orders in which MLflow's clients read them, a page or a sample at a time."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from operator import le
from typing import Any, TypeVar

from sqlalchemy import BigInteger, Connection, Dialect, bindparam, cast, func, select

from trainmaster.dispatcher.store.connection import Database
from trainmaster.dispatcher.store.schema import metric_points, metrics, runs
from trainmaster.dispatcher.store.statements import PreparedSelect, is_one_of, list_value
from trainmaster.dispatcher.store.transactions import Repository, reads
from trainmaster.dispatcher.store.values import TEXT, name_index

T = TypeVar("T")
HistoryPoint = tuple[int, int, float | None]
"""Time in milliseconds, step, and the number; None is NaN."""

_MOST_ORDERS = 16
_BLOCK = 5000
_SCALAR = "scalar"

_points = metric_points.c
MILLISECONDS = cast(func.round(_points.time * 1000), BigInteger)
STEP = func.coalesce(_points.step, _points.idx)
"""A point without a step has its place as its step."""
_NUMBER = func.coalesce(_points.number, 0.0)
_HAS_NUMBER = _points.form < TEXT

_HEAD = PreparedSelect(
    select(metrics.c.id, metrics.c.run_seq, metrics.c.count)
    .select_from(metrics.join(runs, runs.c.seq == metrics.c.run_seq))
    .where(runs.c.id == bindparam("run_id"), metrics.c.name == bindparam("name"), metrics.c.kind == _SCALAR)
)
_IN_ORDER = PreparedSelect(
    select(MILLISECONDS, STEP, _NUMBER, _points.number.is_(None), _points.idx)
    .where(_points.metric_id == bindparam("metric_id"), _HAS_NUMBER)
    .order_by(_points.idx)
)
_ALL = PreparedSelect(
    select(MILLISECONDS, STEP, _points.number)
    .where(_points.metric_id == bindparam("metric_id"), _HAS_NUMBER)
    .order_by(_points.idx)
)
_RANGE = PreparedSelect(
    select(MILLISECONDS, STEP, _points.number)
    .where(
        _points.metric_id == bindparam("metric_id"),
        _points.idx >= bindparam("first"),
        _points.idx < bindparam("end"),
    )
    .order_by(_points.idx)
)


class Order(Enum):
    """What a history is sorted by."""

    TIME = "time, step, value"
    STEP = "step, time, value"


@dataclass(frozen=True)
class _Sorted:
    """The indexes of a metric's points in one of the orders."""

    count: int
    indexes: array[int] | None
    """None if all points are in this order already."""
    steps: array[int]
    """The steps in this order; only if it is that of the steps."""


class Histories(Repository):
    """All values of metrics, as MLflow's clients see them. Only numbers."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._orders: OrderedDict[tuple[Any, ...], _Sorted] = OrderedDict()

    @reads
    def read(
        self, connection: Connection, run_id: str, name: str, offset: int = 0, limit: int | None = None
    ) -> list[HistoryPoint]:
        """The values of a metric by time, step and value, from the one with the number `offset` on."""
        head = _HEAD.row(connection, run_id=run_id, name=name_index(name))
        if head is None:
            return []
        order = self._find_order(connection, head, Order.TIME)
        end = order.count if limit is None else min(offset + limit, order.count)
        return _read_at(connection, head[0], order, range(offset, end))

    @reads
    def convert(
        self, connection: Connection, run_id: str, name: str, convert: Callable[[list[HistoryPoint]], T]
    ) -> list[T]:
        """All values of a metric by time, step and value, converted a block at a time."""
        head = _HEAD.row(connection, run_id=run_id, name=name_index(name))
        if head is None:
            return []
        found: list[T] = []
        last: list[HistoryPoint] = []
        for block in _ALL.blocks(connection, _BLOCK, metric_id=head[0]):
            if not _is_sorted([*last, *block]):
                # Few metrics are logged in another order.
                return [convert(self.read(run_id, name))]
            found.append(convert(block))
            last = block[-1:]
        return found

    @reads
    def sample(
        self, connection: Connection, run_id: str, name: str, most: int, steps: tuple[int, int] | None = None
    ) -> list[HistoryPoint]:
        """At most so many values by step, time and value, at equal distances; the first and the last are among them.

        `steps` has the first and the last step that are wanted.
        """
        head = _HEAD.row(connection, run_id=run_id, name=name_index(name))
        if head is None:
            return []
        order = self._find_order(connection, head, Order.STEP)
        first, end = 0, order.count
        if steps is not None:
            first, end = bisect_left(order.steps, steps[0]), bisect_right(order.steps, steps[1])
        return _read_at(connection, head[0], order, [first + place for place in choose_sample(end - first, most)])

    def _find_order(self, connection: Connection, head: tuple[Any, ...], by: Order) -> _Sorted:
        """The order of a metric's points, remembered: clients read a history page by page."""
        key = (*head, by)
        found = self._orders.get(key)
        if found is None:
            found = self._orders[key] = _sort(connection, head, by)
            while len(self._orders) > _MOST_ORDERS:
                self._orders.popitem(last=False)
        return found


def _is_sorted(points: list[HistoryPoint]) -> bool:
    try:
        return all(map(le, points, points[1:]))
    except TypeError:
        # NaN at the time and the step of another value.
        return False


def choose_sample(count: int, most: int) -> list[int]:
    """The places of the points that stand for `count` points: the first of each of `most` parts, and the last point.

    >>> choose_sample(3, 5), choose_sample(10, 4), choose_sample(10, 1), choose_sample(0, 4)
    ([0, 1, 2], [0, 3, 6, 9], [9], [])
    """
    if count <= most:
        return list(range(max(count, 0)))
    size, larger = divmod(count, most)
    places = [number * size + min(number, larger) for number in range(most)]
    places[-1] = count - 1
    return places


def _sort(connection: Connection, head: tuple[Any, ...], by: Order) -> _Sorted:
    rows = _read_sorted(connection, head[0], by)
    indexes = array("q", [row[4] for row in rows])
    steps = array("q", [row[0] for row in rows] if by is Order.STEP else [])
    is_natural = len(rows) == head[2] and all(place == index for place, index in enumerate(indexes))
    return _Sorted(len(rows), None if is_natural else indexes, steps)


def _read_sorted(connection: Connection, metric_id: int, by: Order) -> list[tuple[Any, ...]]:
    """The two numbers to sort by, the value, whether it is NaN, and the index of all points, sorted."""
    rows = list(_IN_ORDER.rows(connection, metric_id=metric_id))
    if by is Order.STEP:
        rows = [(step, time, number, is_nan, index) for time, step, number, is_nan, index in rows]
    # Most metrics are logged in order, which costs Python little more than looking at them.
    rows.sort()
    return rows


def _read_at(connection: Connection, metric_id: int, order: _Sorted, places: Sequence[int]) -> list[HistoryPoint]:
    """The points at these places of an order."""
    if not places:
        return []
    if order.indexes is None and isinstance(places, range):
        return list(_RANGE.rows(connection, metric_id=metric_id, first=places[0], end=places[-1] + 1))
    indexes = [place if order.indexes is None else order.indexes[place] for place in places]
    values = list_value(indexes, connection.dialect)
    rows = _select_at(connection.dialect).rows(connection, metric_id=metric_id, indexes=values)
    found = {row[0]: row[1:] for row in rows}
    return [found[index] for index in indexes]


@lru_cache(maxsize=8)
def _select_at(dialect: Dialect) -> PreparedSelect:
    return PreparedSelect(
        select(_points.idx, MILLISECONDS, STEP, _points.number).where(
            _points.metric_id == bindparam("metric_id"), is_one_of(_points.idx, "indexes", dialect)
        )
    )
