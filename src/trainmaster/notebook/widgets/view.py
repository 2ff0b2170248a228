"""What the live view shows of a run, as plain data: read from its record, logs and metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import TrainmasterError
from trainmaster.sdk.display.describing import SWEEP
from trainmaster.sdk.display.text import plain_text
from trainmaster.sdk.run.logs import driver_logs, tail
from trainmaster.shared.records import TERMINAL, MetricSeries, MetricSummary, RunQuery, RunRecord
from trainmaster.shared.serialization import from_plain, to_plain
from trainmaster.tuning.space import flat
from trainmaster.tuning.view import SweepView, rank_trials

if TYPE_CHECKING:
    from trainmaster.sdk.backend.backend import LogFile, RunFiles
    from trainmaster.sdk.run.run import Run

_POINTS = 200
_MOST_RANKS = 64
_MOST_CHILDREN = 50
_LARGEST_PICTURE = 1 << 20
_TYPES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".bmp": "image/bmp"}


@dataclass(frozen=True)
class Metric:
    """One metric: a summary, and at most 200 of its values."""

    summary: MetricSummary
    series: MetricSeries


@dataclass(frozen=True)
class Rank:
    """One process of a distributed run."""

    number: int
    name: str
    last_line: str
    failed: bool


@dataclass(frozen=True)
class Picture:
    """The newest image of a metric."""

    name: str
    media_type: str
    data: bytes


@dataclass(frozen=True)
class RunView:
    """A run at one moment."""

    record: RunRecord
    metrics: tuple[Metric, ...]
    ranks: tuple[Rank, ...]
    """Empty for runs with one process."""
    log_name: str
    log: tuple[str, ...]
    """The last lines of rank 0, or of the preparation; empty if the error already contains them."""
    pictures: tuple[Picture, ...]
    children: tuple[RunRecord, ...]
    sweep: SweepView | None = None
    """A sweep with its trials, in place of metrics and children."""
    page: str = ""
    """The address of its page in the studio, if one runs."""

    @property
    def has_ended(self) -> bool:
        return self.record.status in TERMINAL


def look_at(run: Run) -> RunView:
    """The run as it is now."""
    record = from_plain(RunRecord, run._call("runs.get"))
    files = run.experiment.workspace.backend.run_files(run.id)
    logs = files.logs()
    log_name, log = _log(files, logs, record)
    if record.type == SWEEP:
        sweep = from_plain(SweepView, run._call("sweeps.view"))
        return RunView(record, (), (), log_name, log, (), (), sweep, _find_page(run))
    metrics = _metrics(run)
    return RunView(
        record=record,
        metrics=metrics,
        ranks=_ranks(files, logs, record),
        log_name=log_name,
        log=log,
        pictures=tuple(picture for metric in metrics for picture in _picture(files, metric)),
        children=_children(run),
        page=_find_page(run),
    )


def _find_page(run: Run) -> str:
    return run.experiment.workspace.backend.find_page(run._page_path())


def _metrics(run: Run) -> tuple[Metric, ...]:
    found = (from_plain(MetricSeries, each) for each in run._call("runs.series", name=None, max_points=_POINTS))
    series = {each.name: each for each in found}
    summaries = [from_plain(MetricSummary, each) for each in run._call("runs.metrics")]
    return tuple(Metric(summary, series[summary.name]) for summary in summaries if summary.name in series)


def _children(run: Run) -> tuple[RunRecord, ...]:
    query = RunQuery(parent_id=run.id, include_children=True, limit=_MOST_CHILDREN)
    return tuple(from_plain(RunRecord, each) for each in run._workspace_call("runs.list", query=to_plain(query)))


def _ranks(files: RunFiles, logs: Sequence[LogFile], record: RunRecord) -> tuple[Rank, ...]:
    found = driver_logs(logs)
    if len(found) < 2:
        return ()
    names = dict(enumerate(_rank_names(record)))
    return tuple(
        Rank(number, names.get(number, f"rank {number}"), _last_line(files, log), number == _rank_that_failed(record))
        for number, log in list(found.items())[:_MOST_RANKS]
    )


def _rank_names(record: RunRecord) -> tuple[str, ...]:
    from trainmaster.launch.counts import rank_names
    from trainmaster.shared.job_spec import load_spec

    return rank_names(load_spec(record.spec)) if record.spec else ()


def _rank_that_failed(record: RunRecord) -> int | None:
    return None if record.error is None else record.error.details.get("rank")


def _log(files: RunFiles, logs: Sequence[LogFile], record: RunRecord) -> tuple[str, tuple[str, ...]]:
    if record.error is not None and record.error.details.get("tail"):
        return "", ()
    system = [log for log in logs if log.attempt is None and log.name.endswith(".txt")]
    chosen = next(iter(driver_logs(logs).values()), system[-1] if system else None)
    return ("", ()) if chosen is None else (chosen.last_name, _lines(files, chosen))


def _lines(files: RunFiles, log: LogFile) -> tuple[str, ...]:
    return tuple(plain_text(line) for line in tail(files, log).splitlines())


def _last_line(files: RunFiles, log: LogFile) -> str:
    return next((line for line in reversed(_lines(files, log)) if line.strip()), "")


def _picture(files: RunFiles, metric: Metric) -> tuple[Picture, ...]:
    if metric.summary.kind != "image" or not metric.series.values:
        return ()
    name = str(metric.series.values[-1])
    media_type = _TYPES.get(PurePosixPath(name).suffix.lower())
    if media_type is None:
        return ()
    try:
        data = files.read(name, size=_LARGEST_PICTURE + 1)
        return (Picture(metric.summary.name, media_type, data),) if len(data) <= _LARGEST_PICTURE else ()
    except (TrainmasterError, OSError):
        # A missing file must not hide everything else.
        return ()


def widget_data(view: RunView) -> dict[str, Any]:
    """The view with the keys of v1's widget."""
    from trainmaster.sdk.run.details import iso_time, run_definition

    record = view.record
    definition = run_definition(record)
    return {
        "status": str(record.status),
        "run_id": record.id,
        "run_properties": {
            "run_id": record.id,
            "run_number": record.number,
            "created_utc": iso_time(record.created_at),
            "start_time_utc": iso_time(record.started_at),
            "end_time_utc": iso_time(record.ended_at),
            "script_name": definition.get("script"),
            "arguments": definition.get("arguments", []),
            "properties": dict(record.properties),
            "tags": dict(record.tags),
            "status": str(record.status),
        },
        "error": None if record.error is None else {"code": record.error.code, "message": record.error.message},
        "waiting_for": record.waiting_for,
        "warnings": list(record.warnings),
        "run_metrics": [_metric_data(record.id, metric) for metric in view.metrics],
        "run_logs": "\n".join(view.log),
        "ranks": [vars(rank) for rank in view.ranks],
        "child_runs": _child_data(view),
    }


def _child_data(view: RunView) -> list[dict[str, Any]]:
    if view.sweep is None:
        return [{"run_id": child.id, "status": str(child.status)} for child in view.children]
    from trainmaster.sdk.run.details import iso_time

    return [
        {
            "run_id": trial.run_id,
            "status": str(trial.status),
            "metric": trial.last,
            "best_metric": trial.best,
            "hyperdrive_id": str(trial.number),
            "start_time": iso_time(trial.started_at),
            "end_time": iso_time(trial.ended_at),
            **{f"param_{name}": value for name, value in flat(trial.parameters).items()},
        }
        for trial in rank_trials(view.sweep)
    ]


def _metric_data(run_id: str, metric: Metric) -> dict[str, Any]:
    return {
        "name": metric.summary.name,
        "run_id": run_id,
        "categories": list(metric.series.index),
        "series": [{"data": list(metric.series.values)}],
    }
