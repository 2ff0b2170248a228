"""Copies experiments, runs, logged models and registered models from one tracking server of MLflow to another.

Both sides are clients of MLflow, and one of them is a workspace. It may be repeated: what was copied completely is left
alone, and the rest is continued. Into a workspace, ids stay the same, so that `runs:/ID/...` in scripts stays right.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlflow
from mlflow.entities import ViewType
from mlflow.exceptions import MlflowException
from sqlalchemy.exc import SQLAlchemyError

from trainmaster.sdk.mlflow.transfer_models import LoggedModelTransfer
from trainmaster.sdk.mlflow.transfer_registry import RegistryTransfer
from trainmaster.sdk.mlflow.transfer_runs import RunTransfer
from trainmaster.sdk.mlflow.transfer_sides import Side, list_pages
from trainmaster.sdk.mlflow.transfer_state import Copy, Report

_TRACES = 500
"""As many as MLflow gives at once."""

Tell = Callable[[Report, int], None]
"""Shows how far a copy is; takes how many runs there are in all."""


class CopyError(Exception):
    """One of the sides cannot be used at all."""


class Transfer:
    """One copy, from one side to the other."""

    def __init__(self, source: Side, target: Side, tell: Tell, with_files: bool = True) -> None:
        self._copy = Copy(source, target, with_files)
        self._source, self._target = source, target
        for side in (source, target):
            _open(side)
        # Some parts of MLflow only know the address of the whole process, and would create a database without one.
        mlflow.set_tracking_uri(target.address)
        self._tell = tell
        self._runs = RunTransfer(self._copy)
        self._models = LoggedModelTransfer(self._copy)
        self._registry = RegistryTransfer(self._copy)

    def copy(self, names: tuple[str, ...] = ()) -> Report:
        """Copy the experiments with these names, or all of them, and the registered models."""
        try:
            return self._copy_all(names)
        except (MlflowException, SQLAlchemyError, OSError) as error:
            raise CopyError(str(error).splitlines()[0]) from error

    def _copy_all(self, names: tuple[str, ...]) -> Report:
        found = list_pages(self._source.client.search_experiments, view_type=ViewType.ALL)
        chosen = [each for each in found if not names or each.name in names]
        total = self._source.count_runs([each.experiment_id for each in chosen])
        for experiment in chosen:
            self._copy_experiment(experiment, total)
        self._registry.copy_all(are_all=not names)
        return self._copy.report

    def _copy_experiment(self, experiment: Any, total: int) -> None:
        place = self._ensure_experiment(experiment)
        self._copy.report.experiments += 1
        self._tell(self._copy.report, total)
        waiting = []
        """Runs that have made models, which are copied behind all runs."""
        for run in self._source.list_runs(experiment.experiment_id):
            what, outputs = f"run {run.info.run_id}", getattr(run, "outputs", None)
            is_new = self._copy.attempt(what, self._runs.copy_run, run, place)
            if is_new and outputs is not None and outputs.model_outputs:
                # Without its data: there may be many.
                waiting.append((run.info, outputs.model_outputs))
            elif is_new:
                self._finish(run.info, ())
            self._tell(self._copy.report, total)
        self._copy.attempt(f"logged models of {experiment.name!r}", self._models.copy_all, experiment, place)
        for info, outputs in waiting:
            self._finish(info, outputs)
        self._note_traces(experiment)
        if experiment.lifecycle_stage == "deleted":
            self._target.client.delete_experiment(place)

    def _finish(self, info: Any, outputs: Any) -> None:
        problems = len(self._copy.report.problems)
        self._copy.attempt(f"run {info.run_id}", self._runs.finish_run, info, outputs)
        if len(self._copy.report.problems) == problems:
            self._copy.report.runs += 1

    def _note_traces(self, experiment: Any) -> None:
        """Say how many traces stay behind; servers of earlier releases have none."""
        search = getattr(self._source.store, "search_traces", None)
        if search is None or not self._target.is_workspace:
            return
        try:
            found, token = search(experiment_ids=[experiment.experiment_id], max_results=_TRACES)
        except (MlflowException, NotImplementedError):
            return
        if found:
            count = f"more than {len(found)}" if token else str(len(found))
            self._copy.report.left_out.append(f"{count} traces of experiment {experiment.name!r}")

    def _ensure_experiment(self, experiment: Any) -> str:
        known = self._target.client.get_experiment_by_name(experiment.name)
        if known is None:
            made: str = self._target.client.create_experiment(experiment.name, tags=dict(experiment.tags))
            return made
        if known.lifecycle_stage == "deleted":
            self._target.client.restore_experiment(known.experiment_id)
        return str(known.experiment_id)


def _open(side: Side) -> None:
    try:
        _ = side.store
    except (MlflowException, SQLAlchemyError, OSError) as error:
        raise CopyError(str(error).splitlines()[0]) from error
