"""Appending values to metrics: points, their blocks, and one update of each metric's counters a batch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any

from sqlalchemy import Connection, bindparam, func, select, update

from trainmaster.dispatcher.store.ordered_points import Chosen, Point, choose_points
from trainmaster.dispatcher.store.schema import metric_blocks, metric_points, metrics
from trainmaster.dispatcher.store.statements import PreparedChange, PreparedInsert, PreparedSelect
from trainmaster.dispatcher.store.values import NULL, name_index

BLOCK = 64
"""Points in a block."""

SYSTEM = "system"
"""The kind of metrics that Trainmaster measures: what the run uses of its machines."""

METRIC_NAME = func.coalesce(metrics.c.long_name, metrics.c.name).label("name")
"""The name of a metric as it was logged; the column `name` may be shortened."""

_INSERT_POINTS = PreparedInsert(
    metric_points.insert(), ("metric_id", "idx", "number", "form", "text", "step", "time", "rank")
)
_INSERT_BLOCKS = PreparedInsert(metric_blocks.insert(), ("metric_id", "block", "low", "low_idx", "high", "high_idx"))
_INSERT_METRICS = PreparedInsert(metrics.insert(), ("run_seq", "name", "kind", "count", "last_form", "long_name"))
_METRIC = PreparedSelect(
    select(
        metrics.c.id,
        metrics.c.kind,
        metrics.c.count,
        metrics.c.minimum,
        metrics.c.maximum,
        metrics.c.open_low,
        metrics.c.open_low_idx,
        metrics.c.open_high,
        metrics.c.open_high_idx,
        metrics.c.last_idx,
    ).where(metrics.c.run_seq == bindparam("run_seq"), metrics.c.name == bindparam("name"))
)
_COUNTERS = (
    "count",
    "minimum",
    "maximum",
    "last_number",
    "last_form",
    "last_text",
    "open_low",
    "open_low_idx",
    "open_high",
    "open_high_idx",
    "last_idx",
)
_UPDATE = PreparedChange(
    update(metrics)
    .where(metrics.c.id == bindparam("metric"))
    .values(**{name: bindparam(f"new_{name}") for name in _COUNTERS})
)


@dataclass
class Batch:
    """New values of one metric."""

    kind: str
    points: list[Point] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)
    """All kinds it was logged as."""
    ranks: list[int] = field(default_factory=list)
    """Of the points, in their order, if one journal has those of several ranks (or nodes)."""
    is_ordered: bool = False
    """Whether equal points are kept once, and the last value is that of the highest step, as MLflow has it."""


@dataclass
class _Metric:
    """A metric's row while values are added to it."""

    id: int
    kind: str
    count: int
    minimum: float | None
    maximum: float | None
    low: float | None
    low_idx: int | None
    high: float | None
    high_idx: int | None
    last_idx: int | None


def append(connection: Connection, run_seq: int, batches: dict[str, Batch], rank: int | None) -> list[str]:
    """Add what `rank` logged, by metric name, and return the names of metrics that were logged as several kinds."""
    found = _find(connection, run_seq, list(batches))
    new = [
        (run_seq, name_index(name), batch.kind, 0, NULL, None if name_index(name) == name else name)
        for name, batch in batches.items()
        if name not in found
    ]
    if new:
        _INSERT_METRICS.run(connection, new)
        found.update(_find(connection, run_seq, [name for name in batches if name not in found]))
    points: list[tuple[Any, ...]] = []
    blocks: list[tuple[Any, ...]] = []
    updates: list[dict[str, Any]] = []
    for name, batch in batches.items():
        metric = found[name]
        if batch.is_ordered:
            chosen = choose_points(connection, metric.id, metric.count, metric.last_idx, batch.points)
            if chosen is not None:
                added = _add(metric, chosen.points, repeat(rank), points, blocks)
                updates.append({**added, **_set_last(metric, chosen)})
        elif batch.points:
            updates.append(_add(metric, batch.points, chain(batch.ranks, repeat(rank)), points, blocks))
    _INSERT_POINTS.run(connection, points)
    _INSERT_BLOCKS.run(connection, blocks)
    for values in updates:
        _UPDATE.run(connection, **values)
    return [name for name, batch in batches.items() if batch.kinds - {found[name].kind}]


def _find(connection: Connection, run_seq: int, names: list[str]) -> dict[str, _Metric]:
    found = {}
    for name in names:
        row = _METRIC.row(connection, run_seq=run_seq, name=name_index(name))
        if row is not None:
            found[name] = _Metric(*row)
    return found


def _add(
    metric: _Metric,
    new: list[Point],
    ranks: Iterable[int | None],
    points: list[tuple[Any, ...]],
    blocks: list[tuple[Any, ...]],
) -> dict[str, Any]:
    """Append the rows for `new` to `points` and `blocks`, and return the new values of the metric's row."""
    identity, index = metric.id, metric.count
    for ((number, form, text), step, time), rank in zip(new, ranks, strict=False):
        points.append((identity, index, number, form, text, step, time, rank))
        if number is not None:
            if metric.low is None or number < metric.low:
                metric.low, metric.low_idx = number, index
            if metric.high is None or number > metric.high:
                metric.high, metric.high_idx = number, index
        index += 1
        if index % BLOCK == 0:
            blocks.append((identity, index // BLOCK - 1, metric.low, metric.low_idx, metric.high, metric.high_idx))
            _close_block(metric)
    _widen(metric)
    number, form, text = new[-1][0]
    return {
        "metric": identity,
        "new_count": index,
        "new_minimum": metric.minimum,
        "new_maximum": metric.maximum,
        "new_last_number": number,
        "new_last_form": form,
        "new_last_text": text,
        "new_open_low": metric.low,
        "new_open_low_idx": metric.low_idx,
        "new_open_high": metric.high,
        "new_open_high_idx": metric.high_idx,
        "new_last_idx": None,
    }


def _set_last(metric: _Metric, chosen: Chosen) -> dict[str, Any]:
    """The last value of a metric whose points are ordered by their steps."""
    number, form, text = chosen.last
    is_newest = chosen.last_idx == metric.count + len(chosen.points) - 1
    return {
        "new_last_number": number,
        "new_last_form": form,
        "new_last_text": text,
        "new_last_idx": None if is_newest else chosen.last_idx,
    }


def _close_block(metric: _Metric) -> None:
    _widen(metric)
    metric.low = metric.low_idx = metric.high = metric.high_idx = None


def _widen(metric: _Metric) -> None:
    """Merge the open block's extremes into those of the whole metric."""
    if metric.low is not None and (metric.minimum is None or metric.low < metric.minimum):
        metric.minimum = metric.low
    if metric.high is not None and (metric.maximum is None or metric.high > metric.maximum):
        metric.maximum = metric.high
