"""Many metrics of many runs at once, for pages of charts and for lines in tables. Only numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Dialect, bindparam, or_, select

from trainmaster.dispatcher.store.metrics import HEAD_COLUMNS, read_one, read_ranks, read_span
from trainmaster.dispatcher.store.points import BLOCK, SYSTEM
from trainmaster.dispatcher.store.schema import metric_points, metrics, runs
from trainmaster.dispatcher.store.statements import PreparedSelect, chunks, is_one_of, list_value
from trainmaster.dispatcher.store.transactions import Repository, reads
from trainmaster.dispatcher.store.values import FLOAT, name_index
from trainmaster.job.errors import UserErrorException
from trainmaster.shared.records import Curve, Finite, MetricSeries, Sparkline

MOST_VALUES = 2_000_000
"""Points of all curves of one answer."""
_SCALAR = "scalar"
_LONG = 5000
_MANY = 20
"""Curves of one answer, from which on long ones are read in their blocks."""


class Curves(Repository):
    """Curves of metrics."""

    @reads
    def read(
        self,
        connection: Connection,
        run_ids: Sequence[str],
        names: Sequence[str] | None,
        max_points: int,
        since: Mapping[str, Mapping[str, int]],
        by_rank: bool = False,
        until: Mapping[str, Mapping[str, int]] | None = None,
    ) -> list[Curve]:
        """The curves of these runs, by run and then by metric, thinned to `max_points` each.

        `since` has the index from which on values are wanted, by run and metric, and `until` the one before which.
        """
        found: list[Curve] = []
        heads = list(_list_heads(connection, run_ids, names))
        points = sum(min(head[3], max_points) for _, head in heads)
        if points > MOST_VALUES:
            raise UserErrorException(
                f"{len(heads)} curves with {points} points are too many for one answer",
                hint=f"Ask for fewer runs, metrics or points: at most {MOST_VALUES:,} points.",
            )
        is_many = len(heads) > _MANY
        for run_id, head in heads:
            first = since.get(run_id, {}).get(head[1], 0)
            last = (until or {}).get(run_id, {}).get(head[1])
            span = range(first, head[3] if last is None else last)
            if by_rank:
                ranks = read_ranks(connection, head, max_points, span)
                found += [_make_curve(run_id, each.series, each.rank) for each in ranks]
                continue
            most = limit_points(head[3] if last is None else len(span), max_points, is_many)
            # What is new has to be nothing else; a part of a curve may begin a little earlier.
            is_new = last is None
            series = read_one(connection, head, most, first) if is_new else read_span(connection, head, most, span)
            found.append(_make_curve(run_id, series, None))
        return found

    @reads
    def sketch(
        self, connection: Connection, run_ids: Sequence[str], names: Sequence[str], points: int
    ) -> list[Sparkline]:
        """A few points of each metric, at about equal distances; the first and the last are among them."""
        statement = _select_numbers(connection.dialect)
        found: list[Sparkline] = []
        for run_id, head in _list_heads(connection, run_ids, names):
            wanted = list_value(choose_evenly(head[3], points), connection.dialect)
            rows = statement.rows(connection, metric_id=head[0], indexes=wanted)
            found.append(Sparkline(run_id, head[1], tuple(_finite(number) for (number,) in rows)))
        return found


def limit_points(count: int, max_points: int, is_many: bool) -> int:
    """How many points of a metric with `count` values are read.

    A long one is read in its blocks, which is ten times quicker, if it is one of many, or if its blocks have at least
    half of the points that are wanted.

    >>> limit_points(10_000, 500, is_many=False), limit_points(10_000, 2000, is_many=False)
    (314, 2000)
    >>> limit_points(10_000, 2000, is_many=True), limit_points(4000, 2000, is_many=True)
    (314, 2000)
    """
    in_blocks = 2 + 2 * (count // BLOCK)
    if count < _LONG or not (is_many or 2 * in_blocks >= max_points):
        return max_points
    return min(max_points, in_blocks)


def choose_evenly(count: int, most: int) -> list[int]:
    """At most so many of the indexes below `count`, at about equal distances.

    >>> choose_evenly(3, 10), choose_evenly(101, 3), choose_evenly(5, 1), choose_evenly(0, 3)
    ([0, 1, 2], [0, 50, 100], [4], [])
    """
    if count <= most:
        return list(range(count))
    if most == 1:
        return [count - 1]
    return [number * (count - 1) // (most - 1) for number in range(most)]


def _list_heads(
    connection: Connection, run_ids: Sequence[str], names: Sequence[str] | None
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """The run and the row of each metric that has numbers, in the order of the runs and names."""
    seqs: dict[str, int] = {}
    for part in chunks(list(dict.fromkeys(run_ids))):
        seqs.update(
            (row.id, row.seq) for row in connection.execute(select(runs.c.id, runs.c.seq).where(runs.c.id.in_(part)))
        )
    heads: dict[int, list[tuple[Any, ...]]] = {}
    statement = _select_heads(connection.dialect, names is not None)
    values = {"seqs": list_value(list(seqs.values()), connection.dialect)}
    if names is not None:
        values["names"] = list_value([name_index(name) for name in names], connection.dialect)
    for row in statement.rows(connection, **values) if seqs else ():
        heads.setdefault(row[0], []).append(tuple(row[1:]))
    order = {name: number for number, name in enumerate(names or ())}
    for run_id in dict.fromkeys(run_ids):
        for head in sorted(
            heads.get(seqs.get(run_id, 0), ()), key=lambda each: (order.get(each[1], len(order)), each[0])
        ):
            yield run_id, head


@lru_cache(maxsize=8)
def _select_heads(dialect: Dialect, has_names: bool) -> PreparedSelect:
    # Texts are scalars too.
    is_number = or_(metrics.c.minimum.is_not(None), metrics.c.last_form == FLOAT)
    # What Trainmaster measured is only there by its name.
    is_kind = or_(metrics.c.kind == _SCALAR, metrics.c.kind == SYSTEM) if has_names else metrics.c.kind == _SCALAR
    rows = select(metrics.c.run_seq, *HEAD_COLUMNS).where(
        is_one_of(metrics.c.run_seq, "seqs", dialect), is_kind, is_number
    )
    return PreparedSelect(rows.where(is_one_of(metrics.c.name, "names", dialect)) if has_names else rows)


@lru_cache(maxsize=8)
def _select_numbers(dialect: Dialect) -> PreparedSelect:
    return PreparedSelect(
        select(metric_points.c.number)
        .where(metric_points.c.metric_id == bindparam("metric_id"), is_one_of(metric_points.c.idx, "indexes", dialect))
        .order_by(metric_points.c.idx)
    )


def _make_curve(run_id: str, series: MetricSeries, rank: int | None) -> Curve:
    return Curve(
        run_id,
        series.name,
        series.count,
        rank,
        tuple(_finite(value) for value in series.values),
        series.steps if any(step is not None for step in series.steps) else (),
        tuple(Finite(time) for time in series.times),
        series.index,
    )


def _finite(value: Any) -> Finite | None:
    if isinstance(value, bool | int | float) and math.isfinite(value):
        return Finite(float(value))
    return None
