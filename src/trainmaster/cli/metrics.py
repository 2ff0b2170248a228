"""`trainmaster metrics`."""

from __future__ import annotations

import time
from typing import Any

from trainmaster.cli import exits
from trainmaster.cli.opening import find_run, open_workspace
from trainmaster.cli.parsing import Options, Parser, add_run
from trainmaster.cli.screen import note, paint, say, say_json, width_of_terminal
from trainmaster.cli.sparkline import sparkline
from trainmaster.cli.table import Column, render
from trainmaster.errors import UserErrorException
from trainmaster.plain import from_plain
from trainmaster.records import MetricSeries, MetricSummary

_SPARK_WIDTH = 32
_COLUMNS = (
    Column("METRIC", style=lambda text: "bold"),
    Column("LAST", right=True),
    Column("MIN", right=True),
    Column("MAX", right=True),
    Column("COUNT", right=True),
    Column("", style=lambda text: "cyan"),
)
_VALUES = (
    Column("INDEX", right=True),
    Column("STEP", right=True),
    Column("TIME"),
    Column("VALUE", flexible=True),
)


def metrics_arguments(parser: Parser) -> None:
    add_run(parser)
    parser.add_argument("name", metavar="NAME", nargs="?", help="only this metric, with its values")
    parser.add_argument(
        "--points", metavar="N", type=int, default=100, help="thin longer series to N values (default: 100)"
    )


def metrics(options: Options) -> int:
    """What a run logged. JSON: a list of {"name", "kind", "count", "last", "min", "max", "index", "steps", "times",
    "values"}; `index` is the place of each value in the whole series, NaN and infinities are texts.
    """
    if options.points < 1:
        raise UserErrorException(f"--points must be at least 1, not {options.points}")
    workspace = open_workspace(options.workspace)
    run_id = find_run(workspace, options.run).id
    found = workspace._call("runs.series", run_id=run_id, name=options.name, max_points=options.points)
    summaries = [from_plain(MetricSummary, each) for each in workspace._call("runs.metrics", run_id=run_id)]
    if options.name is not None and not found:
        known = ", ".join(summary.name for summary in summaries)
        raise UserErrorException(
            f"run {run_id} has no metric '{options.name[:300]}'", hint=f"It has: {known or 'none yet'}."
        )
    series = {each.name: each for each in (from_plain(MetricSeries, one) for one in found)}
    chosen = [(summary, series[summary.name]) for summary in summaries if summary.name in series]
    if options.json:
        say_json([metric_as_json(summary, values) for summary, values in chosen])
    elif chosen:
        _show(chosen, with_values=options.name is not None)
    else:
        note(f"Run {run_id} has logged no metrics.")
    return exits.OK


def metric_as_json(summary: MetricSummary, series: MetricSeries) -> dict[str, Any]:
    """The keys of a metric."""
    return {
        "name": summary.name,
        "kind": summary.kind,
        "count": summary.count,
        "last": summary.last,
        "min": summary.minimum,
        "max": summary.maximum,
        "index": series.index,
        "steps": series.steps,
        "times": series.times,
        "values": series.values,
    }


def _show(chosen: list[tuple[MetricSummary, MetricSeries]], with_values: bool) -> None:
    rows = [metric_row(summary, series) for summary, series in chosen]
    for line in render(_COLUMNS, rows, width_of_terminal(), paint):
        say(line)
    if not with_values:
        return
    say()
    for _, series in chosen:
        for line in render(_VALUES, value_rows(series), width_of_terminal(), paint):
            say(line)


def metric_row(summary: MetricSummary, series: MetricSeries) -> tuple[str, ...]:
    """A metric as a row; tables, pictures and the like have no line of blocks."""
    spark = sparkline(series.values, _SPARK_WIDTH) if summary.kind == "scalar" and summary.count > 1 else ""
    return (
        summary.name,
        shown(summary.last),
        shown(summary.minimum),
        shown(summary.maximum),
        str(summary.count),
        spark,
    )


def value_rows(series: MetricSeries) -> list[tuple[str, ...]]:
    """The values of a series, a row each."""
    rows: list[tuple[str, ...]] = []
    for n, value in enumerate(series.values):
        index = series.index[n] if n < len(series.index) else n
        step = series.steps[n] if n < len(series.steps) else None
        at = time.strftime("%H:%M:%S", time.localtime(series.times[n])) if n < len(series.times) else ""
        rows.append((str(index), "" if step is None else str(step), at, shown(value)))
    return rows


def shown(value: Any) -> str:
    """A value of a metric for people.

    >>> shown(0.123456789), shown(3), shown(None), shown({"a": 1})
    ('0.123457', '3', '', 'a=1')
    """
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict):
        return " ".join(f"{key}={shown(item)}" for key, item in value.items())
    return str(value)
