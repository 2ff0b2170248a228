"""What a script logs with MLflow, as part of its run. MLflow finds this by an entry point of the kit, and loads it only
where `MLFLOW_TRACKING_URI` begins with `trainmaster:`.

MLflow's first run in a process is the run of the job; further ones and nested ones are its children. Metrics go to the
run's metrics, parameters to its parameters and tags, tags to its tags, artifacts to its files. What this process has
logged is read back from its memory. Other runs, experiments and logged models are those of the workspace.
"""

import os
from time import time
from warnings import warn

from mlflow.entities import Experiment, Param, Run, RunData, RunInfo, RunStatus, RunTag
from mlflow.exceptions import MlflowException
from mlflow.store.entities.paged_list import PagedList
from mlflow.store.tracking.abstract_store import AbstractStore

from trainmaster.job.script.mlflow.asked_files import localize
from trainmaster.job.script.mlflow.endings import Endings
from trainmaster.job.script.mlflow.files import address_of, note_model
from trainmaster.job.script.mlflow.releases import make, not_here
from trainmaster.job.script.mlflow.sending import send
from trainmaster.job.script.mlflow.tags import FILES_IN_RUN
from trainmaster.job.script.run import get_context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_EXPERIMENT = "0"
_PARENT, _NAME = "mlflow.parentRunId", "mlflow.runName"


class _TrackedRun(object):
    """A run, and what MLflow knows about it."""

    def __init__(self, run: "Any", name: str, start_time: int) -> None:
        self.run = run
        self.name = name
        self.start_time = start_time
        self.end_time = None
        self.status = RunStatus.RUNNING
        self.metrics: "dict[str, list[Any]]" = {}
        self.params: "dict[str, str]" = {}
        self.tags: "dict[str, str]" = {}
        self.datasets: "list[Any]" = []
        self.input_models: "list[Any]" = []
        self.output_models: "list[Any]" = []

    @property
    def files(self) -> str:
        return os.path.join(self.run._folder, "files")


class JobStore(AbstractStore):  # type: ignore[misc]
    """MLflow's store of one process of a job."""

    def __init__(self, store_uri: "Any" = None, artifact_uri: "Any" = None) -> None:
        super(JobStore, self).__init__()
        self._runs: "dict[str, _TrackedRun]" = {}
        self._models: "dict[str, Any]" = {}
        self._asking: "Any" = None
        self._experiment_id = ""
        self._endings = Endings()

    @property
    def _workspace(self) -> "Any":
        """Everything that this process has not logged itself."""
        if self._asking is None:
            from trainmaster.job.script.mlflow.rest import AskingStore

            self._asking = AskingStore("trainmaster:run", _send)
        return self._asking

    def _own_experiment(self) -> str:
        """The id that the job's experiment has in the workspace."""
        if not self._experiment_id:
            name = get_context(allow_offline=False).experiment.name
            self._experiment_id = self._workspace.get_experiment_by_name(name).experiment_id
        return self._experiment_id

    def _tell(self, method: str, *args: "Any") -> "Any":
        """Tells the workspace about a model or an input. Training goes on if it cannot be reached."""
        try:
            return getattr(self._workspace, method)(*args)
        except MlflowException as error:
            warn("the workspace does not know what MLflow logged: {}".format(error), stacklevel=2)
            return None

    # Runs

    def create_run(
        self, experiment_id: str, user_id: "Any", start_time: "Any", tags: "Any", run_name: "Any" = None
    ) -> "Any":
        self._endings.confirm()
        labels = {tag.key: tag.value for tag in tags or ()}
        name = run_name or labels.get(_NAME, "")
        job = get_context(allow_offline=False)
        parent = self._runs.get(labels.get(_PARENT, ""))
        if parent is None and job.id not in self._runs:
            run = job
        else:
            run = (parent.run if parent else job).child_run(name or None)
        self._runs[run.id] = _TrackedRun(run, name, start_time)
        self.log_batch(run.id, (), (), tags or ())
        return self.get_run(run.id)

    def get_run(self, run_id: str) -> "Any":
        if not self._is_own(run_id):
            return self._workspace.get_run(run_id)
        known = self._find(run_id)
        latest = [points[-1] for points in known.metrics.values()]
        params = [Param(*pair) for pair in known.params.items()]
        tags = [RunTag(*pair) for pair in known.tags.items()]
        return make(
            Run,
            run_info=self._info(known),
            run_data=RunData(latest, params, tags),
            run_inputs=_inputs(known),
            run_outputs=_outputs(known),
        )

    def run_of(self, run_id: str) -> "Any":
        """The run of Trainmaster that has this id."""
        return self._find(run_id).run

    def _is_own(self, run_id: str) -> bool:
        return run_id in self._runs or run_id == get_context(allow_offline=False).id

    def _find(self, run_id: str) -> "_TrackedRun":
        job = get_context(allow_offline=False)
        if run_id == job.id and run_id not in self._runs:
            self._runs[run_id] = _TrackedRun(job, "", int(time() * 1000))
        if run_id not in self._runs:
            raise MlflowException("Run '{}' was not started by this process".format(run_id))
        return self._runs[run_id]

    def _info(self, known: "Any") -> "Any":
        return make(
            RunInfo,
            run_uuid=known.run.id,
            run_id=known.run.id,
            experiment_id=_EXPERIMENT,
            user_id="",
            status=RunStatus.to_string(known.status),
            start_time=known.start_time,
            end_time=known.end_time,
            lifecycle_stage="active",
            artifact_uri=address_of(known.files),
            run_name=known.name,
        )

    def update_run_info(self, run_id: str, run_status: "Any", end_time: "Any", run_name: "Any" = None) -> "Any":
        known = self._find(run_id)
        known.status, known.end_time = run_status, end_time
        known.name = run_name or known.name
        # The exit code of the job decides how its own run ends.
        if known.run is not get_context(allow_offline=False):
            self._endings.note(known.run, run_status)
        return self._info(known)

    def delete_run(self, run_id: str) -> None:
        raise not_here("deleting runs")

    def restore_run(self, run_id: str) -> None:
        raise not_here("restoring runs")

    # What is logged

    def log_batch(self, run_id: str, metrics: "Any", params: "Any", tags: "Any") -> None:
        known = self._find(run_id)
        self._endings.confirm(known.run)
        for metric in metrics:
            points = known.metrics.setdefault(metric.key, [])
            self._add_to_model(known.run, metric)
            # MLflow 3 logs a metric again for each model that is logged after it.
            if getattr(metric, "model_id", None) and any(_is_same(metric, each) for each in points):
                continue
            points.append(metric)
            # MLflow passes 0 if the script gave no step.
            known.run.log(metric.key, metric.value, step=metric.step or None)
        labels = {param.key: str(param.value) for param in params}
        self._check_unchanged(known, labels)
        known.params.update(labels)
        if labels:
            known.run._append({"k": "params", "v": dict(labels), "t": time()})
        own = {tag.key: str(tag.value) for tag in tags}
        known.tags.update(own)
        # The run knows what MLflow's own tags say.
        labels.update((key, value) for key, value in own.items() if not key.startswith("mlflow."))
        if labels:
            known.run.set_tags(labels)

    def _add_to_model(self, run: "Any", metric: "Any") -> None:
        model = self._models.get(getattr(metric, "model_id", None) or "")
        if model is not None:
            model.metrics = [*(model.metrics or ()), metric]
            record = {"k": "model", "m": model.model_id, "n": metric.key, "v": metric.value, "s": metric.step}
            dataset = {"dataset": metric.dataset_name, "digest": metric.dataset_digest}
            run._append(dict(record, t=metric.timestamp / 1000, **{key: each for key, each in dataset.items() if each}))

    def _check_unchanged(self, known: "Any", params: "Any") -> None:
        for key, value in params.items():
            if known.params.get(key, value) != value:
                raise MlflowException(
                    "Changing param values is not allowed. Param with key='{}' was already logged with value='{}' "
                    "for run ID='{}'. Attempted logging new value '{}'.".format(
                        key, known.params[key], known.run.id, value
                    )
                )

    def log_metric(self, run_id: str, metric: "Any") -> None:
        self.log_batch(run_id, [metric], [], [])

    def log_param(self, run_id: str, param: "Any") -> None:
        self.log_batch(run_id, [], [param], [])

    def set_tag(self, run_id: str, tag: "Any") -> None:
        self.log_batch(run_id, [], [], [tag])

    def delete_tag(self, run_id: str, key: str) -> None:
        known = self._find(run_id)
        known.tags.pop(key, None)
        known.run.remove_tags([key])

    def log_inputs(self, run_id: str, datasets: "Any" = None, models: "Any" = None) -> None:
        known = self._find(run_id)
        known.datasets.extend(datasets or ())
        known.input_models.extend(models or ())
        self._tell("log_inputs", run_id, datasets, *([models] if models else []))

    def log_outputs(self, run_id: str, models: "Any") -> None:
        self._find(run_id).output_models.extend(models)
        self._tell("log_outputs", run_id, models)

    def record_logged_model(self, run_id: str, mlflow_model: "Any") -> None:
        """A model's files are in the run."""

    def link_traces_to_run(self, trace_ids: "Any", run_id: str) -> None:
        """Traces are not kept."""

    def get_metric_history(
        self, run_id: str, metric_key: str, max_results: "Any" = None, page_token: "Any" = None
    ) -> "Any":
        if not self._is_own(run_id):
            return self._workspace.get_metric_history(run_id, metric_key, max_results, page_token)
        return PagedList(self._find(run_id).metrics.get(metric_key, []), None)

    def _search_runs(
        self,
        experiment_ids: "Any",
        filter_string: "Any",
        run_view_type: "Any",
        max_results: "Any",
        order_by: "Any",
        page_token: "Any",
    ) -> "Any":
        from mlflow.entities import ViewType
        from mlflow.utils.search_utils import SearchUtils

        is_first = not page_token and run_view_type != ViewType.DELETED_ONLY
        runs = [self.get_run(run_id) for run_id in self._runs] if is_first else []
        found = SearchUtils.filter(runs, filter_string)
        ids = [self._own_experiment() if each == _EXPERIMENT else each for each in experiment_ids]
        others = self._workspace.search_runs(ids, filter_string, run_view_type, max_results, order_by, page_token)
        found += [each for each in others if each.info.run_id not in self._runs]
        whole = SearchUtils.sort(found, order_by) if runs else found
        # What is cut off would be missing on the next page.
        return whole[:max_results], others.token if len(whole) <= max_results else None

    # Experiments: to log, there is only the job's, whatever name a script gives it.

    def get_experiment(self, experiment_id: str) -> "Any":
        if experiment_id not in (_EXPERIMENT, self._experiment_id):
            return self._workspace.get_experiment(experiment_id)
        run = get_context(allow_offline=False)
        return Experiment(_EXPERIMENT, run.experiment.name, address_of(run._files_folder()), "active")

    def get_experiment_by_name(self, experiment_name: "Any") -> "Any":
        return self.get_experiment(_EXPERIMENT)

    def search_experiments(
        self,
        view_type: "Any" = None,
        max_results: "Any" = None,
        filter_string: "Any" = None,
        order_by: "Any" = None,
        page_token: "Any" = None,
    ) -> "Any":
        return self._workspace.search_experiments(
            *([] if view_type is None else [view_type]),
            max_results=max_results,
            filter_string=filter_string,
            order_by=order_by,
            page_token=page_token,
        )

    def list_experiments(self, view_type: "Any" = None, max_results: "Any" = None, page_token: "Any" = None) -> "Any":
        return self.search_experiments()

    def create_experiment(self, name: str, artifact_location: "Any" = None, tags: "Any" = None) -> "Any":
        return _EXPERIMENT

    def set_experiment_tag(self, experiment_id: str, tag: "Any") -> None:
        """The experiment is the workspace's."""

    def delete_experiment(self, experiment_id: str) -> None:
        raise not_here("deleting experiments")

    def restore_experiment(self, experiment_id: str) -> None:
        raise not_here("restoring experiments")

    def rename_experiment(self, experiment_id: str, new_name: "Any") -> None:
        raise not_here("renaming experiments")

    # Models of MLflow 3: there they are no longer artifacts of a run, here they still are.

    def create_logged_model(
        self,
        experiment_id: "str | None" = None,
        name: "str | None" = None,
        source_run_id: "Any" = None,
        tags: "Any" = None,
        params: "Any" = None,
        model_type: "Any" = None,
    ) -> "Any":
        from mlflow.entities import LoggedModel

        job = get_context(allow_offline=False)
        known = self._find(source_run_id or job.id)
        name = name or "model"
        place = os.path.join(known.files, name)
        if os.path.exists(place) or any(each.artifact_location == address_of(place) for each in self._models.values()):
            place += "-" + os.urandom(4).hex()
        else:
            note_model(place)
        model_id = self._announce_model(name, known.run.id, tags, params, model_type, os.path.basename(place))
        now = int(time() * 1000)
        self._models[model_id] = LoggedModel(
            experiment_id=_EXPERIMENT,
            model_id=model_id,
            name=name,
            artifact_location=address_of(place),
            creation_timestamp=now,
            last_updated_timestamp=now,
            model_type=model_type,
            source_run_id=known.run.id,
            tags=tags,
            params=params,
        )
        return self._models[model_id]

    def _announce_model(
        self, name: str, run_id: str, tags: "Any", params: "Any", model_type: "Any", files: str
    ) -> "Any":
        """The id that the workspace gives a model; one of our own if it cannot be asked."""
        from mlflow.entities import LoggedModelTag

        tags = [*(tags or ()), LoggedModelTag(FILES_IN_RUN, files)]
        try:
            made = self._workspace.create_logged_model(self._own_experiment(), name, run_id, tags, params, model_type)
            return made.model_id
        except MlflowException as error:
            warn("the workspace does not know the model {!r}: {}".format(name, error), stacklevel=2)
            return "m-" + os.urandom(16).hex()

    def get_logged_model(self, model_id: str, allow_deleted: "Any" = False) -> "Any":
        if model_id not in self._models:
            return self._workspace.get_logged_model(model_id)
        return self._models[model_id]

    def search_logged_models(
        self,
        experiment_ids: "Any" = None,
        filter_string: "Any" = None,
        datasets: "Any" = None,
        max_results: "Any" = None,
        order_by: "Any" = None,
        page_token: "Any" = None,
    ) -> "Any":
        from mlflow.utils.search_utils import SearchLoggedModelsUtils

        own = [] if page_token else list(self._models.values())
        found = SearchLoggedModelsUtils.filter_logged_models(own, filter_string, datasets)
        ids = [self._own_experiment() if each == _EXPERIMENT else each for each in experiment_ids or [_EXPERIMENT]]
        others = self._workspace.search_logged_models(ids, filter_string, datasets, max_results, order_by, page_token)
        found += [each for each in others if each.model_id not in self._models]
        whole = SearchLoggedModelsUtils.sort(found, order_by) if own else found
        most = max_results or 100
        return PagedList(whole[:most], others.token if len(whole) <= most else None)

    def delete_logged_model(self, model_id: str) -> None:
        raise not_here("deleting models")

    def delete_logged_model_tag(self, model_id: str, key: str) -> None:
        self.get_logged_model(model_id).tags.pop(key, None)
        self._tell("delete_logged_model_tag", model_id, key)

    def finalize_logged_model(self, model_id: str, status: "Any") -> "Any":
        model = self.get_logged_model(model_id)
        model.status = status
        self._tell("finalize_logged_model", model_id, status)
        return model

    def log_logged_model_params(self, model_id: str, params: "Any") -> None:
        self.get_logged_model(model_id).params.update((each.key, each.value) for each in params)
        self._tell("log_logged_model_params", model_id, params)

    def set_logged_model_tags(self, model_id: str, tags: "Any") -> None:
        self.get_logged_model(model_id).tags.update((each.key, each.value) for each in tags)
        self._tell("set_logged_model_tags", model_id, tags)


def _send(method: str, path: str, arguments: "dict[str, Any]") -> "Any":
    found = send(method, path, arguments)
    return dict(found, body=localize(found["body"]))


def _inputs(known: "Any") -> "Any":
    try:
        from mlflow.entities import RunInputs
    except ImportError:
        return None
    return make(RunInputs, dataset_inputs=list(known.datasets), model_inputs=list(known.input_models))


def _outputs(known: "Any") -> "Any":
    try:
        from mlflow.entities import RunOutputs
    except ImportError:
        return None
    return RunOutputs(list(known.output_models))


def _is_same(one: "Any", other: "Any") -> bool:
    return (one.value, one.step, one.timestamp) == (other.value, other.step, other.timestamp)
