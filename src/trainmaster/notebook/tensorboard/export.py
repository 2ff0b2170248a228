"""Writes the metrics of runs as event files for TensorBoard."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import UserErrorException
from trainmaster.notebook.tensorboard import events
from trainmaster.shared.records import MetricSeries
from trainmaster.shared.serialization import from_plain

if TYPE_CHECKING:
    from trainmaster.sdk.run.run import Run

# TensorBoard reads every file with "tfevents" in its name. A second export replaces the first by the same name.
_FILE = "events.out.tfevents.trainmaster"


def export_to_tensorboard(
    run_data: Any, logsdir: str | os.PathLike[str], logger: Any = None, recursive: bool = True
) -> None:
    """Writes the metrics of one or more runs to `<logsdir>/<run id>`; with `recursive`, those of child runs too.

    Numbers become scalars, the columns of a table scalars named `name/column`; texts and images stay what they are.
    Another export replaces the first.
    """
    for run in _all_runs(run_data, recursive):
        path = _write(run, Path(logsdir))
        if logger is not None:
            logger.info("metrics of run %s: %s", run.id, path)


def _all_runs(run_data: Any, recursive: bool) -> Iterator[Run]:
    for run in as_runs(run_data, "run_data"):
        yield run
        if recursive:
            yield from run.get_children(recursive=True)


def as_runs(given: Any, parameter: str) -> list[Run]:
    """A list of the run or runs in `given`."""
    from trainmaster.sdk.run.run import Run

    runs = [given] if isinstance(given, Run) else list(given) if isinstance(given, Iterable) else [given]
    for run in runs:
        if not isinstance(run, Run):
            raise UserErrorException(
                f"{parameter} must be a run or a list of runs, not {type(run).__name__}",
                hint="experiment.submit returns a run; workspace.get_run(run_id) finds one.",
            )
    return runs


def _write(run: Run, logsdir: Path) -> Path:
    folder = logsdir / run.id
    path, partial = folder / _FILE, folder / ".partial"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with open(partial, "wb") as file:
            file.writelines(events.event_file(run._record.created_at, _events(run)))
        os.replace(partial, path)
    except OSError as error:
        raise UserErrorException(f"the metrics cannot be written to {folder}", cause=str(error)) from None
    return path


def _events(run: Run) -> Iterator[bytes]:
    for series in (from_plain(MetricSeries, each) for each in run._call("runs.series", name=None)):
        for number, value in enumerate(series.values):
            step = series.steps[number] if series.steps else None
            yield from _value_events(run, series, value, number if step is None else step, series.times[number])


def _value_events(run: Run, series: MetricSeries, value: Any, step: int, time: float) -> Iterator[bytes]:
    if series.kind == "image":
        picture = run.experiment.workspace.backend.run_files(run.id).read(str(value))
        yield events.image(series.name, picture, step, time)
    elif isinstance(value, dict):
        for column, cell in value.items():
            yield from _cell_events(f"{series.name}/{column}", cell, step, time)
    else:
        yield from _cell_events(series.name, value, step, time)


def _cell_events(tag: str, value: Any, step: int, time: float) -> Iterator[bytes]:
    if value is None:
        return
    if isinstance(value, int | float):
        yield events.scalar(tag, _as_float(value), step, time)
    else:
        yield events.text(tag, str(value), step, time)


def _as_float(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
