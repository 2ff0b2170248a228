"""What a report shows of a run, as plain data of limited size: read from its record, metrics, logs and files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from trainmaster.job.agent.tail import last_lines
from trainmaster.job.errors import TrainmasterError
from trainmaster.sdk.display.describing import SWEEP
from trainmaster.sdk.run.details import run_attempts
from trainmaster.sdk.run.logs import driver_logs
from trainmaster.shared.records import MetricSeries, MetricSummary, RunQuery, RunRecord
from trainmaster.shared.serialization import from_plain, to_plain
from trainmaster.tuning.view import SweepView

if TYPE_CHECKING:
    from trainmaster.sdk.backend.backend import LogFile, RunFiles
    from trainmaster.sdk.workspace.workspace import Workspace

MOST_METRICS = 1000
_MOST_CHARTS_OF_MANY = 100
"""How many metrics have a chart if a run has more than `MOST_METRICS`."""
_MOST_POINTS, _FEWEST_PER_CHART, _MOST_PER_CHART = 60_000, 40, 400
_MOST_RANKS = 64
_MOST_CHILDREN = 100
_MOST_FILES = 500
_MOST_PICTURES = 12
_LARGEST_PICTURE = 512 * 1024
_LONGEST_LOCK = 256 * 1024
_READ = 256 * 1024
_LINES, _LINES_OF_OTHERS = 300, 40
_BYTES, _BYTES_OF_OTHERS = 48 * 1024, 8 * 1024
_PICTURE_TYPES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif"}


@dataclass(frozen=True)
class Metric:
    """A metric. Without a series it has no chart."""

    summary: MetricSummary
    series: MetricSeries | None = None


@dataclass(frozen=True)
class LogEnd:
    """The last lines of a log."""

    name: str
    rank: int | None
    text: str
    is_whole: bool


@dataclass(frozen=True)
class Picture:
    """The newest image of a metric."""

    name: str
    media_type: str
    data: bytes


@dataclass(frozen=True)
class Report:
    """A run at one moment."""

    record: RunRecord
    workspace: str
    read_at: float
    attempts: tuple[dict[str, object], ...] = ()
    metrics: tuple[Metric, ...] = ()
    metric_count: int = 0
    system: tuple[Metric, ...] = ()
    """What the run used of its machines."""
    pictures: tuple[Picture, ...] = ()
    logs: tuple[LogEnd, ...] = ()
    log_count: int = 0
    files: tuple[tuple[str, int], ...] = ()
    file_count: int = 0
    lock: str = ""
    children: tuple[RunRecord, ...] = ()
    sweep: SweepView | None = None
    """A sweep with its trials, in place of children."""


def read_report(workspace: Workspace, run_id: str, now: float) -> Report:
    """The run as it is now."""
    connection, files = workspace.connection, workspace.backend.run_files(run_id)
    record = from_plain(RunRecord, connection.call("runs.get", run_id=run_id))
    summaries = [from_plain(MetricSummary, each) for each in connection.call("runs.metrics", run_id=run_id)]
    metrics = tuple(_read_metrics(workspace, run_id, summaries))
    names = files.names()
    logs = files.logs()
    chosen = _choose_logs(logs)
    is_sweep = record.type == SWEEP
    return Report(
        record=record,
        workspace=workspace.name,
        read_at=now,
        attempts=tuple(run_attempts(record, files)),
        metrics=metrics,
        metric_count=len(summaries),
        system=tuple(_read_system(workspace, run_id)),
        pictures=tuple(_read_pictures(files, metrics)),
        logs=tuple(_read_end(files, log, record) for log in chosen[:_MOST_RANKS]),
        log_count=len(chosen),
        files=tuple(files.sizes(names[:_MOST_FILES])),
        file_count=len(names),
        lock=(files.read_environment_lock() or "")[:_LONGEST_LOCK],
        children=() if is_sweep else tuple(_read_children(workspace, run_id)),
        sweep=from_plain(SweepView, connection.call("sweeps.view", run_id=run_id)) if is_sweep else None,
    )


def _read_metrics(workspace: Workspace, run_id: str, summaries: Sequence[MetricSummary]) -> Iterable[Metric]:
    """The metrics, all with a chart unless there are too many."""
    call = workspace.connection.call
    points = share_points(len(summaries))
    if len(summaries) <= MOST_METRICS:
        names: Sequence[str | None] = [None] if summaries else []
    else:
        names = [summary.name for summary in summaries[:_MOST_CHARTS_OF_MANY]]
    series: dict[str, MetricSeries] = {}
    for name in names:
        for each in call("runs.series", run_id=run_id, name=name, max_points=points):
            found = from_plain(MetricSeries, each)
            series[found.name] = found
    return (Metric(summary, series.get(summary.name)) for summary in summaries[:MOST_METRICS])


def _read_system(workspace: Workspace, run_id: str) -> Iterable[Metric]:
    call = workspace.connection.call
    answers = call("runs.metrics", run_id=run_id, system=True)
    summaries = {summary.name: summary for summary in (from_plain(MetricSummary, each) for each in answers)}
    if not summaries:
        return
    for each in call("runs.series", run_id=run_id, max_points=share_points(len(summaries)), system=True):
        series = from_plain(MetricSeries, each)
        if series.name in summaries:
            yield Metric(summaries[series.name], series)


def share_points(metrics: int) -> int:
    """How many points each chart has, if there are so many.

    >>> share_points(1), share_points(300), share_points(1000)
    (400, 200, 60)
    """
    return max(_FEWEST_PER_CHART, min(_MOST_PER_CHART, _MOST_POINTS // max(1, metrics)))


def _choose_logs(logs: Sequence[LogFile]) -> list[LogFile]:
    """The logs of all ranks; before there are any, those of the system."""
    ranks = list(driver_logs(logs).values())
    return ranks or [log for log in logs if log.attempt is None and log.name.endswith(".txt")]


def _read_end(files: RunFiles, log: LogFile, record: RunRecord) -> LogEnd:
    failed = None if record.error is None else record.error.details.get("rank")
    is_main = log.rank in (None, 0, failed)
    start = max(0, log.size - _READ)
    data = files.read_log(log.name, log.identity, start).data
    lines, size = (_LINES, _BYTES) if is_main else (_LINES_OF_OTHERS, _BYTES_OF_OTHERS)
    text = last_lines(data, start > 0, lines, size)
    is_whole = start == 0 and data.count(b"\n") <= lines and len(data) <= size
    return LogEnd(log.name, log.rank, text, is_whole)


def _read_pictures(files: RunFiles, metrics: Iterable[Metric]) -> Iterable[Picture]:
    images = [each for each in metrics if each.summary.kind == "image" and each.series and each.series.values]
    for metric in images[:_MOST_PICTURES]:
        assert metric.series is not None
        name = str(metric.series.values[-1])
        media_type = _PICTURE_TYPES.get(PurePosixPath(name).suffix.lower())
        if media_type is None:
            continue
        try:
            data = files.read(name, size=_LARGEST_PICTURE + 1)
        except (TrainmasterError, OSError):
            # A missing file must not hide everything else.
            continue
        if len(data) <= _LARGEST_PICTURE:
            yield Picture(metric.summary.name, media_type, data)


def _read_children(workspace: Workspace, run_id: str) -> Iterable[RunRecord]:
    query = RunQuery(parent_id=run_id, include_children=True, limit=_MOST_CHILDREN)
    found = workspace.connection.call("runs.list", query=to_plain(query))
    return (from_plain(RunRecord, each) for each in found)
