"""MLflow's database in a workspace, with the experiments and runs of programs outside of jobs."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

_PLACE = "MLflow's own database of the workspace"


def address(workspace: Path) -> str:
    """The address for `mlflow.set_tracking_uri`; its folder is created."""
    _file(workspace).parent.mkdir(exist_ok=True)
    return f"sqlite:///{_file(workspace)}"


def explain_experiment(workspace: Path, name: str) -> str:
    """Where an experiment of this name is, if MLflow created it outside of a job; else empty."""
    if not _has(workspace, "SELECT 1 FROM experiments WHERE name = ?", name):
        return ""
    return (
        f"MLflow created an experiment {name!r} outside of a job: it is in {_PLACE}, not among its experiments. "
        f"Read it with mlflow.search_runs(experiment_names=[{name!r}]), or log with Experiment.start_logging()"
    )


def explain_run(workspace: Path, run_id: str) -> str:
    """Where a run with this id is, if MLflow created it outside of a job; else empty."""
    if not _has(workspace, "SELECT 1 FROM runs WHERE run_uuid = ?", run_id):
        return ""
    return f"MLflow created it outside of a job: it is in {_PLACE}. Read it with mlflow.get_run({run_id!r})"


def _file(workspace: Path) -> Path:
    return workspace / "mlflow" / "mlflow.db"


def _has(workspace: Path, question: str, value: str) -> bool:
    if not _file(workspace).is_file():
        return False
    try:
        with contextlib.closing(sqlite3.connect(f"{_file(workspace).as_uri()}?mode=ro", uri=True)) as database:
            return database.execute(question, (str(value),)).fetchone() is not None
    except sqlite3.Error:
        # It belongs to a release of MLflow with other tables, or is being created.
        return False
