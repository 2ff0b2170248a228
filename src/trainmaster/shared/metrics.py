"""Metrics in the shape that `run.get_metrics()` gives them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from trainmaster.shared.records import MetricSeries

ARTIFACT = "aml://artifactId/"


def metric_value(series: MetricSeries) -> Any:
    """The value of a metric as v1 returns it.

    Logged once: the value; several times: the list, in order. Rows: a dict from column to value or list, None
    in a missing cell. Images and structured metrics: a reference to the run's file.

        >>> metric_value(MetricSeries("loss", "scalar", 2, (0.5, 0.25)))
        [0.5, 0.25]
        >>> metric_value(MetricSeries("lr", "row", 2, ({"step": 1}, {"step": 2, "lr": 0.1})))
        {'step': [1, 2], 'lr': [None, 0.1]}
        >>> metric_value(MetricSeries("plot", "image", 1, ("plot_1700000000.png",)))
        'aml://artifactId/plot_1700000000.png'
    """
    if series.kind == "row":
        return _columns(series.name, series.values)
    if series.kind in ("image", "json"):
        return _one_or_all([ARTIFACT + value if isinstance(value, str) else value for value in series.values])
    return _one_or_all(list(series.values))


def thinned(values: Sequence[Any], count: int) -> list[Any]:
    """At most `count` of the values, evenly chosen, the first and the last among them.

    >>> thinned(range(100), 4)
    [0, 33, 66, 99]
    """
    if len(values) <= count:
        return list(values)
    if count == 1:
        return [values[-1]]
    return [values[round(n * (len(values) - 1) / (count - 1))] for n in range(count)]


def finite_number(value: Any) -> float | None:
    """What can be drawn of a value: a number that is one."""
    if not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _one_or_all(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else values


def _columns(name: str, values: Sequence[Any]) -> dict[str, Any]:
    # A scalar that was logged under the name of a table is a row with one cell, named as the metric.
    rows = [value if isinstance(value, Mapping) else {name: value} for value in values]
    columns = dict.fromkeys(column for row in rows for column in row)
    return {column: _one_or_all([row.get(column) for row in rows]) for column in columns}
