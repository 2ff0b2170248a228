"""Reading metrics: summaries, whole series, and long series thinned for a chart."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Dialect, bindparam, func, select

from trainmaster.dispatcher.store.connection import Database
from trainmaster.dispatcher.store.points import BLOCK, METRIC_NAME, SYSTEM
from trainmaster.dispatcher.store.runs import Runs
from trainmaster.dispatcher.store.schema import metric_blocks, metric_points, metrics
from trainmaster.dispatcher.store.statements import PreparedSelect, is_one_of, list_value
from trainmaster.dispatcher.store.transactions import Repository, reads
from trainmaster.dispatcher.store.values import FLOAT, decode, name_index
from trainmaster.job.errors import UserErrorException
from trainmaster.shared.records import LatestUse, MetricSeries, MetricSummary, RankMetric

_FIRST_LOOK = 16
"""Points that are looked at for the newest of each rank, if there are few ranks."""

Extremes = tuple[int, float | None, int | None, float | None, int | None]
"""Of neighbouring points: index of the first, the smallest number and its index, the largest and its."""

_SUMMARY = (
    select(
        METRIC_NAME,
        metrics.c.kind,
        metrics.c.count,
        metrics.c.last_number,
        metrics.c.last_form,
        metrics.c.last_text,
        metrics.c.minimum,
        metrics.c.maximum,
    )
    .where(metrics.c.run_seq == bindparam("run_seq"))
    .order_by(metrics.c.id)
)
# What the script logged, and what Trainmaster measured.
_SUMMARIES = PreparedSelect(_SUMMARY.where(metrics.c.kind != SYSTEM))
_SYSTEM_SUMMARIES = PreparedSelect(_SUMMARY.where(metrics.c.kind == SYSTEM))
HEAD_COLUMNS = (
    metrics.c.id,
    METRIC_NAME,
    metrics.c.kind,
    metrics.c.count,
    metrics.c.open_low,
    metrics.c.open_low_idx,
    metrics.c.open_high,
    metrics.c.open_high_idx,
)
_EACH_HEAD = select(*HEAD_COLUMNS).where(metrics.c.run_seq == bindparam("run_seq")).order_by(metrics.c.id)
_HEADS = PreparedSelect(_EACH_HEAD.where(metrics.c.kind != SYSTEM))
_SYSTEM_HEADS = PreparedSelect(_EACH_HEAD.where(metrics.c.kind == SYSTEM))
_HEAD = PreparedSelect(
    select(*HEAD_COLUMNS).where(metrics.c.run_seq == bindparam("run_seq"), metrics.c.name == bindparam("name"))
)
_POINT_COLUMNS = (
    metric_points.c.number,
    metric_points.c.form,
    metric_points.c.text,
    metric_points.c.step,
    metric_points.c.time,
    metric_points.c.rank,
)
_ALL_POINTS = PreparedSelect(
    select(*_POINT_COLUMNS).where(metric_points.c.metric_id == bindparam("metric_id")).order_by(metric_points.c.idx)
)
_POINTS_SINCE = PreparedSelect(
    select(*_POINT_COLUMNS)
    .where(metric_points.c.metric_id == bindparam("metric_id"), metric_points.c.idx >= bindparam("first"))
    .order_by(metric_points.c.idx)
)
_POINTS_BETWEEN = PreparedSelect(
    select(*_POINT_COLUMNS)
    .where(
        metric_points.c.metric_id == bindparam("metric_id"),
        metric_points.c.idx >= bindparam("first"),
        metric_points.c.idx < bindparam("until"),
    )
    .order_by(metric_points.c.idx)
)
_NUMBERS = PreparedSelect(
    select(metric_points.c.number)
    .where(metric_points.c.metric_id == bindparam("metric_id"))
    .order_by(metric_points.c.idx)
)
_RANKS = PreparedSelect(
    select(metric_points.c.rank, func.min(metric_points.c.number), func.max(metric_points.c.number))
    .where(metric_points.c.metric_id == bindparam("metric_id"))
    .group_by(metric_points.c.rank)
)
_POINTS_OF_RANK = PreparedSelect(
    select(metric_points.c.idx, *_POINT_COLUMNS)
    .where(metric_points.c.metric_id == bindparam("metric_id"))
    .where(metric_points.c.rank.is_not_distinct_from(bindparam("rank")))
    .order_by(metric_points.c.idx)
)
_BLOCKS = PreparedSelect(
    select(metric_blocks.c.low, metric_blocks.c.low_idx, metric_blocks.c.high, metric_blocks.c.high_idx)
    .where(metric_blocks.c.metric_id == bindparam("metric_id"))
    .order_by(metric_blocks.c.block)
)
_BLOCKS_BETWEEN = PreparedSelect(
    select(metric_blocks.c.low, metric_blocks.c.low_idx, metric_blocks.c.high, metric_blocks.c.high_idx)
    .where(
        metric_blocks.c.metric_id == bindparam("metric_id"),
        metric_blocks.c.block >= bindparam("first"),
        metric_blocks.c.block < bindparam("until"),
    )
    .order_by(metric_blocks.c.block)
)


class Metrics(Repository):
    """The metrics of runs."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._runs = Runs(database)

    @reads
    def summarize(self, connection: Connection, run_id: str, *, system: bool = False) -> list[MetricSummary]:
        """The run's metrics without their history, in the order they were first logged.

        With `system`, what the run used of its machines instead.
        """
        rows = (_SYSTEM_SUMMARIES if system else _SUMMARIES).rows(connection, run_seq=self._runs.get_seq(run_id))
        return [
            MetricSummary(name, kind, count, decode(number, form, text), minimum, maximum)
            for name, kind, count, number, form, text, minimum, maximum in rows
        ]

    @reads
    def read(
        self,
        connection: Connection,
        run_id: str,
        name: str | None = None,
        *,
        max_points: int | None = None,
        since: int = 0,
        system: bool = False,
    ) -> list[MetricSeries]:
        """The values of the run's metrics, or of the metric called `name`, from the index `since` on.

        With `system`, what the run used of its machines; by its name any metric can be read.

        With `max_points`, a longer series is thinned to at most that many of its own points: the first and the
        last, and the smallest and the largest number of each of `(max_points - 2) // 2` parts of about equal
        length (the first point of a part without numbers). `index` is the position of each in the full series.
        """
        heads = _heads(connection, self._runs.get_seq(run_id), name, max_points, system)
        return [read_one(connection, head, max_points, since) for head in heads]

    @reads
    def read_latest_use(self, connection: Connection, run_id: str) -> LatestUse | None:
        """What the run used when it was last measured; None if it never was."""
        heads = _SYSTEM_HEADS.rows(connection, run_seq=self._runs.get_seq(run_id))
        found = {head[1]: _latest_by_rank(connection, head) for head in heads}
        times = [at for by_rank in found.values() for _, at in by_rank.values()]
        if not times:
            return None
        values = {name: {str(rank): value for rank, (value, _) in by_rank.items()} for name, by_rank in found.items()}
        return LatestUse(run_id, max(times), values)

    @reads
    def read_by_rank(
        self,
        connection: Connection,
        run_id: str,
        name: str | None = None,
        *,
        max_points: int | None = None,
        system: bool = False,
    ) -> list[RankMetric]:
        """The same for each rank that logged to a metric, lowest first; values without a rank come before."""
        heads = _heads(connection, self._runs.get_seq(run_id), name, max_points, system)
        return [each for head in heads for each in read_ranks(connection, head, max_points)]


def _latest_by_rank(connection: Connection, head: tuple[Any, ...]) -> dict[int, tuple[float, float]]:
    """The newest value of each rank with its time, from as few of the last points as are needed."""
    metric_id, count = head[0], head[3]
    wanted, found = _FIRST_LOOK, dict[int, tuple[float, float]]()
    while True:
        rows = _POINTS_SINCE.rows(connection, metric_id=metric_id, first=max(0, count - wanted))
        found = {row[5]: (row[0], row[4]) for row in rows if row[0] is not None and row[5] is not None}
        # Ranks take turns, so all of them are among points that have each several times.
        if wanted >= count or len(found) * 4 <= wanted:
            return found
        wanted *= 4


def _rank_of(row: tuple[Any, ...]) -> int:
    return -1 if row[0] is None else row[0]


def _heads(
    connection: Connection, run_seq: int, name: str | None, max_points: int | None, system: bool
) -> Sequence[tuple[Any, ...]]:
    if max_points is not None and max_points < 1:
        raise UserErrorException(f"max_points must be at least 1, not {max_points}")
    if name is None:
        return (_SYSTEM_HEADS if system else _HEADS).rows(connection, run_seq=run_seq)
    return _HEAD.rows(connection, run_seq=run_seq, name=name_index(name))


def read_one(connection: Connection, head: tuple[Any, ...], max_points: int | None, since: int = 0) -> MetricSeries:
    """The series of the metric that has the columns `HEAD_COLUMNS`, from the index `since` on."""
    metric_id, name, kind, count = head[:4]
    if since > 0:
        rows = _POINTS_SINCE.rows(connection, metric_id=metric_id, first=since) if since < count else ()
        return _make_rest(name, kind, count, rows, since, max_points)
    if max_points is None or count <= max_points:
        index: tuple[int, ...] = tuple(range(count))
        rows = _ALL_POINTS.rows(connection, metric_id=metric_id)
    else:
        index = tuple(_choose(count, max_points, lambda buckets: _extremes(connection, head, buckets)))
        rows = _points_at(connection, metric_id, index)
    return _series(name, kind, count, rows, index)


def _make_rest(
    name: str, kind: str, count: int, rows: Sequence[tuple[Any, ...]], since: int, max_points: int | None
) -> MetricSeries:
    """The points after those that a client has already."""
    chosen: Sequence[int] = range(len(rows))
    if max_points is not None and len(rows) > max_points:
        chosen = _choose(len(rows), max_points, lambda _: _each(row[0] for row in rows))
    return _series(name, kind, count, [rows[n] for n in chosen], tuple(since + n for n in chosen))


def read_span(connection: Connection, head: tuple[Any, ...], max_points: int, span: range) -> MetricSeries:
    """The values at the indexes of `span`, thinned to `max_points` as the whole series would be.

    Of a long part, extremes are those of its blocks of points, which may begin a little before it and end after it.
    """
    metric_id, name, kind, count = head[:4]
    first, until = max(0, span.start), min(count, span.stop)
    if first >= until:
        return MetricSeries(name, kind, count)
    if until - first < BLOCK * max(2, (max_points - 2) // 2):
        rows = _POINTS_BETWEEN.rows(connection, metric_id=metric_id, first=first, until=until)
        return _make_rest(name, kind, count, rows, first, max_points)
    places = _choose(until - first, max_points, lambda _: _from_blocks_between(connection, head, first, until))
    index = tuple(sorted({min(count - 1, max(0, first + place)) for place in places}))
    return _series(name, kind, count, _points_at(connection, metric_id, index), index)


def read_ranks(
    connection: Connection, head: tuple[Any, ...], max_points: int | None, span: range | None = None
) -> list[RankMetric]:
    """The series of each rank, lowest first. With `span` only the values at these indexes of all."""
    # Databases do not agree on where NULL is sorted.
    ranks = sorted(_RANKS.rows(connection, metric_id=head[0]), key=_rank_of)
    return [_read_rank(connection, head, rank, minimum, maximum, max_points, span) for rank, minimum, maximum in ranks]


def _read_rank(
    connection: Connection,
    head: tuple[Any, ...],
    rank: int | None,
    minimum: float | None,
    maximum: float | None,
    max_points: int | None,
    span: range | None,
) -> RankMetric:
    metric_id, name, kind = head[:3]
    rows = _POINTS_OF_RANK.rows(connection, metric_id=metric_id, rank=rank)
    count, last = len(rows), decode(*rows[-1][1:4])
    wanted = rows if span is None else [row for row in rows if row[0] in span]
    if max_points is not None and len(wanted) > max_points:
        wanted = [wanted[n] for n in _choose(len(wanted), max_points, lambda _: _each(row[1] for row in wanted))]
    series = _series(name, kind, count, [row[1:] for row in wanted], tuple(row[0] for row in wanted))
    summary = MetricSummary(name, kind, count, last, minimum, maximum)
    return RankMetric(rank, summary, series)


def _series(name: str, kind: str, count: int, rows: Sequence[tuple[Any, ...]], index: tuple[int, ...]) -> MetricSeries:
    if not rows:
        return MetricSeries(name, kind, count)
    numbers, forms, texts, steps, times, ranks = zip(*rows, strict=True)
    return MetricSeries(name, kind, count, _values(numbers, forms, texts), steps, times, index, ranks)


def _choose(count: int, max_points: int, extremes: Callable[[int], Iterable[Extremes]]) -> list[int]:
    """The indexes of the points that represent all `count` points; `extremes` takes the number of buckets."""
    buckets = (max_points - 2) // 2
    if max_points == 1:
        return [count - 1]
    if buckets == 0:
        return [0, count - 1]
    return thin(extremes(buckets), count, buckets)


def _extremes(connection: Connection, head: tuple[Any, ...], buckets: int) -> Iterator[Extremes]:
    # Blocks are as good as points when a bucket has one or more; a shorter series is read itself.
    if head[3] >= BLOCK * buckets:
        return _from_blocks(connection, head)
    return _each(number for (number,) in _NUMBERS.rows(connection, metric_id=head[0]))


def thin(extremes: Iterable[Extremes], count: int, buckets: int) -> list[int]:
    """Indexes of the first and last of `count` points, and of the smallest and largest in each of `buckets`.

    A bucket without any number is represented by its first point.
    """
    chosen = {0, count - 1}
    best: dict[int, Extremes] = {}
    for part in extremes:
        bucket = part[0] * buckets // count
        other = best.get(bucket)
        best[bucket] = part if other is None else _join_extremes(other, part)
    for first, _, low_idx, _, high_idx in best.values():
        chosen.update((first,) if low_idx is None or high_idx is None else (low_idx, high_idx))
    return sorted(chosen)


def _join_extremes(a: Extremes, b: Extremes) -> Extremes:
    first, low, low_idx, high, high_idx = a
    if b[1] is not None and (low is None or b[1] < low):
        low, low_idx = b[1], b[2]
    if b[3] is not None and (high is None or b[3] > high):
        high, high_idx = b[3], b[4]
    return first, low, low_idx, high, high_idx


def _from_blocks(connection: Connection, head: tuple[Any, ...]) -> Iterator[Extremes]:
    metric_id, _, _, count, *open_block = head
    for block, (low, low_idx, high, high_idx) in enumerate(_BLOCKS.rows(connection, metric_id=metric_id)):
        yield block * BLOCK, low, low_idx, high, high_idx
    if count % BLOCK:
        low, low_idx, high, high_idx = open_block
        yield count - count % BLOCK, low, low_idx, high, high_idx


def _from_blocks_between(connection: Connection, head: tuple[Any, ...], first: int, until: int) -> Iterator[Extremes]:
    """The blocks that have points of this part; indexes are counted from its beginning."""
    metric_id, _, _, count, *open_block = head
    begin, end = first // BLOCK, -(-until // BLOCK)
    rows = [*_BLOCKS_BETWEEN.rows(connection, metric_id=metric_id, first=begin, until=end)]
    if until > count - count % BLOCK:
        rows.append(tuple(open_block))
    for block, (low, low_idx, high, high_idx) in enumerate(rows, begin):
        yield (
            block * BLOCK - first,
            low,
            None if low_idx is None else low_idx - first,
            high,
            None if high_idx is None else high_idx - first,
        )


def _each(numbers: Iterable[float | None]) -> Iterator[Extremes]:
    for index, number in enumerate(numbers):
        yield index, number, (None if number is None else index), number, (None if number is None else index)


def _points_at(connection: Connection, metric_id: int, index: tuple[int, ...]) -> Sequence[tuple[Any, ...]]:
    values = list_value(index, connection.dialect)
    return _select_points(connection.dialect).rows(connection, metric_id=metric_id, indexes=values)


@lru_cache(maxsize=8)
def _select_points(dialect: Dialect) -> PreparedSelect:
    mine = metric_points.c.metric_id == bindparam("metric_id")
    chosen = select(*_POINT_COLUMNS).where(mine, is_one_of(metric_points.c.idx, "indexes", dialect))
    return PreparedSelect(chosen.order_by(metric_points.c.idx))


def _values(numbers: tuple[Any, ...], forms: tuple[int, ...], texts: tuple[Any, ...]) -> tuple[Any, ...]:
    if any(form != FLOAT for form in forms):
        return tuple(map(decode, numbers, forms, texts))
    if None in numbers:
        return tuple(math.nan if number is None else number for number in numbers)
    return numbers
