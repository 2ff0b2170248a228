"""The database of MLflow in workspaces of earlier releases, where programs outside of jobs logged to it.

Today MLflow's experiments and runs are those of the workspace.
"""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path


def explain_experiment(workspace: Path, name: str) -> str:
    """Where an experiment of this name is, if MLflow created it outside of a job; else empty."""
    if not _has(workspace, "SELECT 1 FROM experiments WHERE name = ?", name):
        return ""
    return f"MLflow created an experiment {name!r} with an earlier Trainmaster. {_explain_import(workspace)}"


def explain_run(workspace: Path, run_id: str) -> str:
    """Where a run with this id is, if MLflow created it outside of a job; else empty."""
    if not _has(workspace, "SELECT 1 FROM runs WHERE run_uuid = ?", run_id):
        return ""
    return f"MLflow created it with an earlier Trainmaster. {_explain_import(workspace)}"


def _explain_import(workspace: Path) -> str:
    return f"Bring it into the workspace with 'trainmaster import mlflow {_file(workspace)}'"


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
