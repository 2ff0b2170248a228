"""Points as MLflow counts them: equal points are one, and the last is the one with the highest step, time and value."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Dialect, bindparam, select

from trainmaster.dispatcher.store.schema import metric_points
from trainmaster.dispatcher.store.statements import PreparedSelect, is_one_of, list_value
from trainmaster.dispatcher.store.values import Stored

Point = tuple[Stored, int | None, float]
"""Value, step, time."""
Order = tuple[int, float, float]
"""Step, time, value."""
_Identity = tuple[int | None, float, float | None]

_LARGEST = sys.float_info.max
_POINT = PreparedSelect(
    select(
        metric_points.c.number,
        metric_points.c.form,
        metric_points.c.text,
        metric_points.c.step,
        metric_points.c.time,
    ).where(metric_points.c.metric_id == bindparam("metric_id"), metric_points.c.idx == bindparam("idx"))
)


@dataclass(frozen=True)
class Chosen:
    """The points of a batch that are new."""

    points: list[Point]
    last: Stored
    """The last value of the metric after they were added."""
    last_idx: int
    """The index of the last value."""


def choose_points(
    connection: Connection, metric_id: int, count: int, last_idx: int | None, logged: list[Point]
) -> Chosen | None:
    """Those of the points that the metric does not have yet; None if it has all of them.

    `count` is how many it has, and `last_idx` the index of its last value, if that is not the newest one.
    """
    highest: Order | None = None
    last: Stored | None = None
    index = -1
    if count:
        index = count - 1 if last_idx is None else last_idx
        last, step, time = _read_point(connection, metric_id, index)
        highest = order_point(last[0], index if step is None else step, time)
    chosen: list[Point] = []
    known: _Known | None = None
    for point in logged:
        stored, step, time = point
        order = order_point(stored[0], step or 0, time)
        if highest is None or order > highest:
            # The usual case: it comes after all others, so it is none of them.
            highest, last, index = order, stored, count + len(chosen)
            if known is not None:
                known.add(point)
        else:
            if known is None:
                known = _Known(connection, metric_id, logged, chosen)
            if not known.add(point):
                continue
        chosen.append(point)
    if not chosen or last is None:
        return None
    return Chosen(chosen, last, index)


def order_point(number: float | None, step: int, time: float) -> Order:
    """What the points of a metric are ordered by. NaN counts as 0, and infinity as the largest number.

    >>> order_point(0.5, 3, 1.25), order_point(None, 3, 0.0)
    ((3, 1.25, 0.5), (3, 0.0, 0.0))
    """
    if number is None:
        return step, time, 0.0
    return step, time, number if -_LARGEST <= number <= _LARGEST else limit_number(number)


def limit_number(number: float) -> float:
    """The number that MLflow keeps instead of an infinite one.

    >>> limit_number(float("inf")), limit_number(-1.5)
    (1.7976931348623157e+308, -1.5)
    """
    return math.copysign(_LARGEST, number) if math.isinf(number) else number


class _Known:
    """The points that those of a batch may be equal to: those of the metric, and those of the batch itself."""

    def __init__(self, connection: Connection, metric_id: int, logged: list[Point], chosen: list[Point]) -> None:
        # Few batches have points that are not in order, so there is no index for this.
        times = [time for _, _, time in logged]
        self._found: set[_Identity] = set(
            _select_known(connection.dialect).rows(
                connection,
                metric_id=metric_id,
                steps=list_value(list({step for _, step, _ in logged}), connection.dialect),
                first=min(times),
                last=max(times),
            )
        )
        self._found.update(map(_identify, chosen))

    def add(self, point: Point) -> bool:
        """Add a point, and return whether it was new."""
        identity = _identify(point)
        if identity in self._found:
            return False
        self._found.add(identity)
        return True


@lru_cache(maxsize=8)
def _select_known(dialect: Dialect) -> PreparedSelect:
    points = metric_points.c
    return PreparedSelect(
        select(points.step, points.time, points.number).where(
            points.metric_id == bindparam("metric_id"),
            points.time >= bindparam("first"),
            points.time <= bindparam("last"),
            is_one_of(points.step, "steps", dialect),
        )
    )


def _identify(point: Point) -> _Identity:
    (number, _, _), step, time = point
    return step, time, number


def _read_point(connection: Connection, metric_id: int, index: int) -> tuple[Stored, Any, float]:
    row = _POINT.row(connection, metric_id=metric_id, idx=index)
    assert row is not None, "the points of a metric are numbered without gaps"
    number, form, text, step, time = row
    return (number, form, text), step, time
