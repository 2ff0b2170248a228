"""Copies experiments, runs, logged models and registered models from one tracking server of MLflow to another.

Both sides are clients of MLflow, and one of them is a workspace. It may be repeated: what was copied completely is left
alone, and the rest is continued. Into a workspace, ids stay the same, so that `runs:/ID/...` in scripts stays right.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mlflow
from mlflow import MlflowClient
from mlflow.entities import Metric, ViewType
from mlflow.exceptions import MlflowException
from mlflow.protos.service_pb2 import CreateRun
from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository
from sqlalchemy.exc import SQLAlchemyError

ORIGIN, COMPLETE = "trainmaster.copied_from", "trainmaster.copied"
"""Tags of a copied run: the id that it had, and the time of its end there once everything is copied."""
_ID = re.compile(r"[0-9a-f]{32}")
_ENDED = ("FINISHED", "FAILED", "KILLED")
_PAGE, _FEW = 1000, 50
"""Results per page: of most searches, and as many logged models as MLflow gives."""
_MOST_PARAMS, _MOST_METRICS = 100, 1000
_TRACES = 500
"""As many as MLflow gives at once."""
_LOGGED = "models:/m-"
_ABSENT = "RESOURCE_DOES_NOT_EXIST"


class CopyError(Exception):
    """One of the sides cannot be used at all."""


@dataclass
class Report:
    """What was copied, and what was not."""

    experiments: int = 0
    runs: int = 0
    unchanged_runs: int = 0
    values: int = 0
    files: int = 0
    logged_models: int = 0
    versions: int = 0
    left_out: list[str] = field(default_factory=list)
    """What the target has no place for."""
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Side:
    """A tracking server of MLflow, or a workspace."""

    address: str
    is_workspace: bool = False

    @property
    def client(self) -> Any:
        return MlflowClient(tracking_uri=self.address, registry_uri=self.address)


class Transfer:
    """One copy, from one side to the other."""

    def __init__(self, source: Side, target: Side, tell: Callable[[Report], None], with_files: bool = True) -> None:
        try:
            self._source, self._target = source.client, target.client
        except (MlflowException, SQLAlchemyError, OSError) as error:
            raise CopyError(str(error).splitlines()[0]) from error
        self._from, self._to = source, target
        # Some parts of MLflow only know the address of the whole process, and would create a database without one.
        mlflow.set_tracking_uri(target.address)
        self._tell = tell
        self._with_files = with_files
        self._ids: dict[str, str] = {}
        """The id of a run or logged model, and that of its copy."""
        self.report = Report()

    def copy(self, names: tuple[str, ...] = ()) -> Report:
        """Copy the experiments with these names, or all of them, and the registered models."""
        try:
            return self._copy_all(names)
        except (MlflowException, SQLAlchemyError, OSError) as error:
            raise CopyError(str(error).splitlines()[0]) from error

    def _copy_all(self, names: tuple[str, ...]) -> Report:
        for experiment in _list_pages(self._source.search_experiments, view_type=ViewType.ALL):
            if not names or experiment.name in names:
                self._copy_experiment(experiment)
        for model in _list_pages(self._source.search_registered_models):
            versions = self._list_versions(model)
            # The numbers of versions follow each other, so one that is left out now could not come later.
            if not names or all(each.run_id in self._ids for each in versions):
                self._try(f"registered model {model.name!r}", self._copy_registered_model, model, versions)
        return self.report

    def _list_versions(self, model: Any) -> list[Any]:
        found = _list_pages(self._source.search_model_versions, filter_string=f"name = '{model.name}'")
        return sorted(found, key=lambda each: int(each.version))

    def _copy_experiment(self, experiment: Any) -> None:
        place = self._ensure_experiment(experiment)
        self.report.experiments += 1
        self._tell(self.report)
        found = _list_pages(
            self._source.search_runs,
            experiment_ids=[experiment.experiment_id],
            run_view_type=ViewType.ALL,
            # Parents come before their children.
            order_by=["attributes.start_time ASC"],
        )
        # Without their data: there may be many.
        new = [
            (run.info, getattr(run, "outputs", None))
            for run in found
            if self._try(f"run {run.info.run_id}", self._copy_run, run, place)
        ]
        self._try(f"logged models of {experiment.name!r}", self._copy_logged_models, experiment, place)
        for info, outputs in new:
            self._try(f"run {info.run_id}", self._finish_run, info, outputs)
        self._note_traces(experiment)
        if experiment.lifecycle_stage == "deleted":
            self._target.delete_experiment(place)

    def _note_traces(self, experiment: Any) -> None:
        """Say how many traces stay behind; servers of earlier releases have none."""
        search = getattr(self._source._tracking_client.store, "search_traces", None)
        if search is None or not self._to.is_workspace:
            return
        try:
            found, token = search(experiment_ids=[experiment.experiment_id], max_results=_TRACES)
        except (MlflowException, NotImplementedError):
            return
        if found:
            count = f"more than {len(found)}" if token else str(len(found))
            self.report.left_out.append(f"{count} traces of experiment {experiment.name!r}")

    def _ensure_experiment(self, experiment: Any) -> str:
        known = self._target.get_experiment_by_name(experiment.name)
        if known is None:
            made: str = self._target.create_experiment(experiment.name, tags=dict(experiment.tags))
            return made
        if known.lifecycle_stage == "deleted":
            self._target.restore_experiment(known.experiment_id)
        return str(known.experiment_id)

    # Runs

    def _copy_run(self, run: Any, place: str) -> bool:
        """Copy a run without its end; false if its copy is complete already."""
        known = self._find_run(run.info.run_id, place)
        if known is not None:
            self._ids[run.info.run_id] = known.info.run_id
            if known.data.tags.get(COMPLETE) == str(run.info.end_time):
                if run.info.lifecycle_stage == "deleted" != known.info.lifecycle_stage:
                    self._target.delete_run(known.info.run_id)
                self.report.unchanged_runs += 1
                return False
        copy_id = known.info.run_id if known is not None else self._create_run(run, place)
        self._ids[run.info.run_id] = copy_id
        params = list(run.data.params.items())
        for at in range(0, len(params), _MOST_PARAMS):
            part = [mlflow.entities.Param(key, value) for key, value in params[at : at + _MOST_PARAMS]]
            self._target.log_batch(copy_id, params=part)
        for key in run.data.metrics:
            self._copy_history(run.info.run_id, copy_id, key)
        inputs = getattr(run, "inputs", None)
        if inputs is not None and inputs.dataset_inputs:
            self._target.log_inputs(copy_id, inputs.dataset_inputs)
        if self._with_files:
            self._copy_folder(run.info.artifact_uri, lambda folder: self._target.log_artifacts(copy_id, folder))
        self.report.runs += 1
        self._tell(self.report)
        return True

    def _find_run(self, run_id: str, place: str) -> Any:
        """The copy of a run; None if there is none yet."""
        if self._keeps(run_id):
            try:
                return self._target.get_run(run_id)
            except MlflowException as error:
                if error.error_code != _ABSENT:
                    raise
                return None
        quoted = f"tags.`{ORIGIN}` = '{run_id}'"
        return next(iter(self._target.search_runs([place], quoted, ViewType.ALL, max_results=1)), None)

    def _keeps(self, run_id: str) -> bool:
        return self._to.is_workspace and _ID.fullmatch(run_id) is not None

    def _create_run(self, run: Any, place: str) -> str:
        tags = {**run.data.tags, ORIGIN: run.info.run_id}
        parent = tags.get("mlflow.parentRunId")
        if parent in self._ids:
            tags["mlflow.parentRunId"] = self._ids[parent]
        asked = {
            "experiment_id": place,
            "user_id": run.info.user_id or "",
            "run_name": run.info.run_name or "",
            "start_time": run.info.start_time or 0,
            "tags": [{"key": key, "value": value} for key, value in tags.items()],
        }
        if not self._keeps(run.info.run_id):
            labels = {key: value for key, value in tags.items() if key != "mlflow.runName"}
            made = self._target.create_run(place, asked["start_time"], labels, asked["run_name"] or None)
            return str(made.info.run_id)
        # MLflow's client cannot say which id a run shall have; a workspace takes one.
        answer = self._target._tracking_client.store._call_endpoint(
            CreateRun, json.dumps({**asked, "run_id": run.info.run_id})
        )
        return str(answer.run.info.run_id)

    def _copy_history(self, run_id: str, copy_id: str, key: str) -> None:
        points = self._source.get_metric_history(run_id, key)
        for at in range(0, len(points), _MOST_METRICS):
            part = [Metric(key, each.value, each.timestamp, each.step) for each in points[at : at + _MOST_METRICS]]
            self._target.log_batch(copy_id, metrics=part)
            self.report.values += len(part)

    def _finish_run(self, info: Any, outputs: Any) -> None:
        """Note which models a run has made, end it, and say that the copy is complete."""
        copy_id = self._ids[info.run_id]
        if outputs is not None and outputs.model_outputs:
            made = [each for each in outputs.model_outputs if each.model_id in self._ids]
            made = [mlflow.entities.LoggedModelOutput(self._ids[each.model_id], each.step) for each in made]
            if made:
                self._target.log_outputs(copy_id, made)
        if info.status in _ENDED:
            status = mlflow.entities.RunStatus.from_string(info.status)
            self._target._tracking_client.store.update_run_info(copy_id, status, info.end_time, info.run_name)
            self._target.set_tag(copy_id, COMPLETE, str(info.end_time))
        if info.lifecycle_stage == "deleted":
            self._target.delete_run(copy_id)

    def _copy_folder(self, address: str, upload: Callable[[str], None]) -> None:
        """Copy the files at an address, if there are any."""
        with tempfile.TemporaryDirectory(prefix="trainmaster-copy-") as folder:
            with use(self._from.address):
                # Not the one of MLflow's client, which remembers it by the run's id: both sides have the same.
                files = get_artifact_repository(address)
                if not files.list_artifacts():
                    return
                files.download_artifacts("", dst_path=folder)
            upload(folder)
            self.report.files += sum(1 for each in Path(folder).rglob("*") if each.is_file())

    # Logged models, which MLflow has since its third generation

    def _copy_logged_models(self, experiment: Any, place: str) -> None:
        if not hasattr(self._source, "search_logged_models"):
            return
        copies = _list_pages(self._target.search_logged_models, _FEW, experiment_ids=[place])
        known = {each.tags.get(ORIGIN): each for each in copies}
        for model in _list_pages(self._source.search_logged_models, _FEW, experiment_ids=[experiment.experiment_id]):
            copy = known.get(model.model_id)
            self._ids[model.model_id] = copy.model_id if copy is not None else self._create_model(model, place)
            # It gets its state when all of its files are there.
            if copy is None or copy.status != model.status:
                self._fill_model(model, self._ids[model.model_id])

    def _create_model(self, model: Any, place: str) -> str:
        from mlflow.entities import LoggedModelParameter, LoggedModelTag
        from mlflow.protos.service_pb2 import CreateLoggedModel

        run_id = self._ids.get(model.source_run_id, model.source_run_id or "")
        tags = [LoggedModelTag(key, value) for key, value in {**model.tags, ORIGIN: model.model_id}.items()]
        params = [LoggedModelParameter(key, value) for key, value in (model.params or {}).items()]
        store = self._target._tracking_client.store
        if not self._to.is_workspace:
            made = store.create_logged_model(place, model.name, run_id or None, tags, params, model.model_type)
            return str(made.model_id)
        asked = {
            "experiment_id": place,
            "name": model.name,
            "model_type": model.model_type or "",
            "source_run_id": run_id,
            "params": [{"key": each.key, "value": each.value} for each in params],
            "tags": [{"key": each.key, "value": each.value} for each in tags],
            "model_id": model.model_id,
        }
        return str(store._call_endpoint(CreateLoggedModel, json.dumps(asked)).model.info.model_id)

    def _fill_model(self, model: Any, copy_id: str) -> None:
        if self._with_files:
            self._copy_folder(model.artifact_location, lambda folder: self._target.log_model_artifacts(copy_id, folder))
        self._copy_model_values(model, copy_id)
        self._target.finalize_logged_model(copy_id, model.status)
        self.report.logged_models += 1

    def _copy_model_values(self, model: Any, copy_id: str) -> None:
        for each in model.metrics or ():
            if each.run_id in self._ids:
                value = Metric(
                    each.key,
                    each.value,
                    each.timestamp,
                    each.step,
                    model_id=copy_id,
                    dataset_name=each.dataset_name,
                    dataset_digest=each.dataset_digest,
                )
                self._target.log_batch(self._ids[each.run_id], metrics=[value])

    # Registered models

    def _copy_registered_model(self, model: Any, versions: list[Any]) -> None:
        try:
            self._target.get_registered_model(model.name)
        except MlflowException as error:
            if error.error_code != _ABSENT:
                raise
            self._target.create_registered_model(model.name, dict(model.tags), model.description)
        for version in versions:
            self._try(f"version {version.version} of {model.name!r}", self._copy_version, version)
        for alias, number in self._source.get_registered_model(model.name).aliases.items():
            self._try(f"alias {alias!r} of {model.name!r}", self._copy_alias, model.name, alias, number)

    def _copy_alias(self, name: str, alias: str, number: Any) -> None:
        self._target.set_registered_model_alias(name, alias, str(number))

    def _copy_version(self, version: Any) -> None:
        try:
            self._target.get_model_version(version.name, version.version)
            return
        except MlflowException as error:
            if error.error_code != _ABSENT:
                raise
        source = self._find_source(version)
        said: dict[str, Any] = {"tags": dict(version.tags), "description": version.description}
        if source.startswith(_LOGGED):
            said["model_id"] = source[len(_LOGGED) - 2 :]
        while True:
            made = self._target.create_model_version(version.name, source, self._ids.get(version.run_id), **said)
            if int(made.version) >= int(version.version):
                break
            # The number of a version that was deleted there.
            self._target.delete_model_version(made.name, made.version)
        if version.current_stage not in (None, "None"):
            self._target.transition_model_version_stage(made.name, made.version, version.current_stage)
        self.report.versions += 1

    def _find_source(self, version: Any) -> str:
        """Where the files of a version are in the copy."""
        scheme, _, rest = version.source.partition(":/")
        if scheme == "models" and rest in self._ids:
            return f"models:/{self._ids[rest]}"
        before, _, path = version.source.partition("/artifacts/")
        model_id = before.rpartition("/")[2]
        if model_id in self._ids and model_id.startswith("m-"):
            return f"models:/{self._ids[model_id]}"
        if version.run_id in self._ids and path and version.run_id in before:
            return f"runs:/{self._ids[version.run_id]}/{path}"
        raise MlflowException(f"its files are at {version.source}, which belongs to no run that was copied")

    def _try(self, what: str, function: Callable[..., Any], *args: Any) -> Any:
        """What a function returns. An error is noted, and the rest goes on."""
        try:
            return function(*args)
        except (MlflowException, OSError) as error:
            self.report.problems.append(f"{what}: {str(error).splitlines()[0]}")
            return None


@contextmanager
def use(address: str) -> Iterator[None]:
    """For a while, this is the tracking address of the process."""
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(address)
    try:
        yield
    finally:
        mlflow.set_tracking_uri(before)


def _list_pages(search: Callable[..., Any], most: int = _PAGE, **question: Any) -> Iterator[Any]:
    """All results of a search, `most` at a time."""
    token = None
    while True:
        page = search(**question, max_results=most, page_token=token)
        yield from page
        token = page.token
        if not token:
            return
