"""Copies runs: parameters, tags, whole histories, inputs, outputs and files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import mlflow
from mlflow.entities import ViewType
from mlflow.exceptions import MlflowException

from trainmaster.sdk.mlflow.transfer_state import ABSENT, COMPLETE, ORIGIN, Copy

_ID = re.compile(r"[0-9a-f]{32}")
_ENDED = ("FINISHED", "FAILED", "KILLED")


class RunTransfer:
    """Copies runs of one experiment after the other."""

    def __init__(self, copy: Copy) -> None:
        self._copy = copy
        self._source, self._target = copy.source, copy.target

    def copy_run(self, run: Any, place: str) -> bool:
        """Copy a run without its end; false if its copy is complete already."""
        run_id = run.info.run_id
        known = self._find(run_id, place)
        if known is not None:
            copy_id, tags, stage = known
            self._copy.ids[run_id] = copy_id
            if tags.get(COMPLETE) == str(run.info.end_time):
                if run.info.lifecycle_stage == "deleted" != stage:
                    self._target.client.delete_run(copy_id)
                self._copy.report.unchanged_runs += 1
                return False
        copy_id = known[0] if known is not None else self._create(run, place)
        self._copy.ids[run_id] = copy_id
        points = self._source.read_points(run_id, run.data.metrics)
        self._copy.report.values += self._target.log(copy_id, run.data.params, points)
        inputs = getattr(run, "inputs", None)
        if inputs is not None and inputs.dataset_inputs:
            self._target.client.log_inputs(copy_id, inputs.dataset_inputs)
        self._copy.copy_folder(run.info.artifact_uri, lambda folder: self._target.client.log_artifacts(copy_id, folder))
        return True

    def _find(self, run_id: str, place: str) -> tuple[str, Mapping[str, str], str] | None:
        """The id, the tags and the stage of the copy of a run; None if there is none yet."""
        if not self._keeps(run_id):
            quoted = f"tags.`{ORIGIN}` = '{run_id}'"
            for run in self._target.client.search_runs([place], quoted, ViewType.ALL, max_results=1):
                return run.info.run_id, run.data.tags, run.info.lifecycle_stage
            return None
        try:
            run = self._target.ask("GET", "runs/get", run_id=run_id)["run"]
        except MlflowException as error:
            if error.error_code != ABSENT:
                raise
            return None
        tags = {each["key"]: each["value"] for each in run["data"].get("tags", ())}
        return run_id, tags, run["info"]["lifecycle_stage"]

    def _keeps(self, run_id: str) -> bool:
        return self._target.is_workspace and _ID.fullmatch(run_id) is not None

    def _create(self, run: Any, place: str) -> str:
        info = run.info
        tags = {**run.data.tags, ORIGIN: info.run_id}
        parent = tags.get("mlflow.parentRunId")
        if parent in self._copy.ids:
            tags["mlflow.parentRunId"] = self._copy.ids[parent]
        if not self._keeps(info.run_id):
            labels = {key: value for key, value in tags.items() if key != "mlflow.runName"}
            made = self._target.client.create_run(place, info.start_time or 0, labels, info.run_name or None)
            return str(made.info.run_id)
        # MLflow's client cannot say which id a run shall have; a workspace takes one.
        self._target.ask(
            "POST",
            "runs/create",
            run_id=info.run_id,
            experiment_id=place,
            user_id=info.user_id or "",
            run_name=info.run_name or "",
            start_time=info.start_time or 0,
            tags=[{"key": key, "value": value} for key, value in tags.items()],
        )
        return str(info.run_id)

    def finish_run(self, info: Any, outputs: Any) -> None:
        """Note which models a run has made, end it, and say that the copy is complete."""
        copy_id = self._copy.ids[info.run_id]
        ids = self._copy.ids
        made = [each for each in outputs if each.model_id in ids]
        if made:
            given = [mlflow.entities.LoggedModelOutput(ids[each.model_id], each.step) for each in made]
            self._target.client.log_outputs(copy_id, given)
        if info.status in _ENDED:
            self._end(copy_id, info)
        if info.lifecycle_stage == "deleted":
            self._target.client.delete_run(copy_id)

    def _end(self, copy_id: str, info: Any) -> None:
        complete = str(info.end_time)
        if self._target.takes_json:
            end = {"end_time": info.end_time} if info.end_time is not None else {}
            self._target.ask("POST", "runs/update", run_id=copy_id, status=info.status, run_name=info.run_name, **end)
            self._target.ask("POST", "runs/set-tag", run_id=copy_id, key=COMPLETE, value=complete)
            return
        status = mlflow.entities.RunStatus.from_string(info.status)
        self._target.store.update_run_info(copy_id, status, info.end_time, info.run_name)
        self._target.client.set_tag(copy_id, COMPLETE, complete)
