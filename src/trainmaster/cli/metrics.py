"""`trainmaster metrics`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from trainmaster.cli import exits
from trainmaster.cli.opening import find_run, open_workspace
from trainmaster.cli.output import show_table
from trainmaster.cli.parsing import Options, Parser, add_run
from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.display.metric_values import format_value, metric_row
from trainmaster.sdk.display.screen import note, say, say_json
from trainmaster.sdk.display.table import Column
from trainmaster.shared.records import MetricSeries, MetricSummary, RankMetric
from trainmaster.shared.serialization import from_plain

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace

_METRIC = Column("METRIC", flexible=True, style=lambda text: "bold")
_RANK = Column("RANK", right=True)
_OF = Column("OF")
_COLUMNS = (
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
    _RANK,
    Column("VALUE", flexible=True),
)

Chosen = Sequence[tuple[MetricSummary, MetricSeries]]


def metrics_arguments(parser: Parser) -> None:
    add_run(parser)
    parser.add_argument("name", metavar="NAME", nargs="?", help="show the values of this metric only")
    parser.add_argument(
        "--points", metavar="N", type=int, default=100, help="reduce longer series to N values (default: 100)"
    )
    parser.add_argument("--by-rank", action="store_true", help="list each process of a distributed run separately")
    parser.add_argument(
        "--system",
        action="store_true",
        help="show what the run used instead: CPUs, memory, disk, network and GPUs, of each rank and node",
    )


def metrics(options: Options) -> int:
    """Show the metrics that a run logged.

    JSON: a list of {"name", "kind", "count", "last", "min", "max", "index", "steps", "times", "ranks", "values"};
    "index" has the position of each value in the whole series, "ranks" the process that logged it. NaN and infinities
    are strings. With --by-rank each metric also has a "rank", which is null for values from outside of the job. With
    --system each has a "rank" or, if it is of a whole node, a "node".

      trainmaster metrics last
      trainmaster metrics last loss --points 20
      trainmaster metrics last --system
    """
    if options.points < 1:
        raise UserErrorException(f"--points must be at least 1, not {options.points}")
    workspace = open_workspace(options.workspace)
    run_id = find_run(workspace, options.run).id
    if options.system:
        _show_system(_read_system(workspace, run_id, options), options)
    elif options.by_rank:
        _show_by_rank(_read_by_rank(workspace, run_id, options), options)
    else:
        _show(_read(workspace, run_id, options), options)
    return exits.OK


def _read(workspace: Workspace, run_id: str, options: Options) -> Chosen:
    found = workspace.connection.call("runs.series", run_id=run_id, name=options.name, max_points=options.points)
    summaries = [from_plain(MetricSummary, each) for each in workspace.connection.call("runs.metrics", run_id=run_id)]
    if not found:
        _say_nothing_found(run_id, options.name, [summary.name for summary in summaries])
    series = {each.name: each for each in (from_plain(MetricSeries, one) for one in found)}
    return [(summary, series[summary.name]) for summary in summaries if summary.name in series]


def _read_by_rank(workspace: Workspace, run_id: str, options: Options) -> list[RankMetric]:
    found = workspace.connection.call(
        "runs.metrics_by_rank", run_id=run_id, name=options.name, max_points=options.points
    )
    if not found:
        _say_nothing_found(
            run_id, options.name, [each["name"] for each in workspace.connection.call("runs.metrics", run_id=run_id)]
        )
    return [from_plain(RankMetric, each) for each in found]


def _read_system(workspace: Workspace, run_id: str, options: Options) -> list[RankMetric]:
    name = options.name and f"system/{options.name.removeprefix('system/')}"
    read = partial(workspace.connection.call, "runs.metrics_by_rank", run_id=run_id, max_points=options.points)
    found = [from_plain(RankMetric, each) for each in read(name=name, system=True)]
    if not found and name is None:
        note(f"Nothing was measured of run {run_id}: it is shorter than a second, or measuring is turned off.")
    elif not found:
        known = workspace.connection.call("runs.metrics", run_id=run_id, system=True)
        _say_nothing_found(run_id, name, [each["name"] for each in known])
    return found


def _say_nothing_found(run_id: str, name: str | None, known: list[str]) -> None:
    if name is None:
        note(f"Run {run_id} has not logged any metrics.")
        return
    hint = f"It has: {', '.join(known) or 'none yet'}."
    raise UserErrorException(f"run {run_id} has no metric '{name[:300]}'", hint=hint)


def _show(chosen: Chosen, options: Options) -> None:
    if options.json:
        say_json([metric_as_json(summary, series) for summary, series in chosen])
    elif chosen:
        show_table((_METRIC, *_COLUMNS), [metric_row(summary, series) for summary, series in chosen])
        if options.name is not None:
            _show_values([series for _, series in chosen])


def _show_by_rank(found: list[RankMetric], options: Options) -> None:
    if options.json:
        say_json([{"rank": each.rank, **metric_as_json(each.summary, each.series)} for each in found])
    elif found:
        show_table((_METRIC, _RANK, *_COLUMNS), [rank_row(each) for each in found])
        if options.name is not None:
            _show_values([each.series for each in found])


def _show_system(found: list[RankMetric], options: Options) -> None:
    if options.json:
        say_json([{_owner(each): each.rank, **metric_as_json(each.summary, each.series)} for each in found])
    elif found:
        rows = [(name, f"{_owner(each)} {rank}", *cells) for each in found for name, rank, *cells in [rank_row(each)]]
        show_table((_METRIC, _OF, *_COLUMNS), rows)
        if options.name is not None:
            _show_values([each.series for each in found])


def _owner(metric: RankMetric) -> str:
    return "node" if metric.series.name.startswith("system/node/") else "rank"


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
        "ranks": series.ranks,
        "values": series.values,
    }


def _show_values(found: list[MetricSeries]) -> None:
    say()
    show_table(_VALUES, [row for series in found for row in value_rows(series)])


def rank_row(metric: RankMetric) -> tuple[str, ...]:
    """The cells of one rank's metric."""
    name, *cells = metric_row(metric.summary, metric.series)
    return (name, format_value(metric.rank), *cells)


def value_rows(series: MetricSeries) -> list[tuple[str, ...]]:
    """One row for each value of a series."""
    rows: list[tuple[str, ...]] = []
    for n, value in enumerate(series.values):
        index = series.index[n] if n < len(series.index) else n
        step = series.steps[n] if n < len(series.steps) else None
        at = time.strftime("%H:%M:%S", time.localtime(series.times[n])) if n < len(series.times) else ""
        rank = series.ranks[n] if n < len(series.ranks) else None
        rows.append((str(index), format_value(step), at, format_value(rank), format_value(value)))
    return rows
