"""Metrics as text for people: one value, one row of a table."""

from __future__ import annotations

from typing import Any

from trainmaster.sdk.display.sparkline import sparkline
from trainmaster.shared.records import MetricSeries, MetricSummary

_SPARK_WIDTH = 32
_LONGEST = 40


def metric_row(summary: MetricSummary, series: MetricSeries) -> tuple[str, ...]:
    """A metric as a row of a table. Only scalars have a sparkline."""
    spark = sparkline(series.values, _SPARK_WIDTH) if summary.kind == "scalar" and summary.count > 1 else ""
    return (
        summary.name,
        shorten(format_value(summary.last)),
        format_value(summary.minimum),
        format_value(summary.maximum),
        str(summary.count),
        spark,
    )


def shorten(text: str) -> str:
    """A text for a cell of a table: one line of limited length.

    >>> shorten("a b"), shorten("word\\n" * 20)
    ('a b', 'word word word word word word word wo...')
    """
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."


def format_value(value: Any) -> str:
    """A value of a metric as text.

    >>> format_value(0.123456789), format_value(3), format_value(None), format_value({"a": 1})
    ('0.123457', '3', '', 'a=1')
    """
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict):
        return " ".join(f"{key}={format_value(item)}" for key, item in value.items())
    return str(value)
