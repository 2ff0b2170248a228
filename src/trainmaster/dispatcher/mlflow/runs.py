"""Runs: creating and changing them, their parameters and tags."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Mapping
from typing import Any

from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.mlflow.checks import check_param, check_tag, read_pairs
from trainmaster.dispatcher.mlflow.clock import read_clock
from trainmaster.dispatcher.mlflow.endpoints import endpoint
from trainmaster.dispatcher.mlflow.errors import ABSENT, BAD_REQUEST, EXISTS, WRONG, MlflowError
from trainmaster.dispatcher.mlflow.experiments import require_active_experiment
from trainmaster.dispatcher.mlflow.requests import Request, wrong_value
from trainmaster.dispatcher.mlflow.run_messages import STATUS, RunMessages
from trainmaster.dispatcher.mlflow.run_names import choose_name
from trainmaster.dispatcher.runs.updates import RunUpdates
from trainmaster.dispatcher.store.mlflow_runs import RUN_NAME, MlflowRuns, RunHead
from trainmaster.shared.records import MLFLOW_RUN, TERMINAL, Status

_STATES: Mapping[Any, Status] = {
    "RUNNING": Status.RUNNING,
    "SCHEDULED": Status.NOT_STARTED,
    "FINISHED": Status.COMPLETED,
    "FAILED": Status.FAILED,
    "KILLED": Status.CANCELED,
}
_NUMBERS = dict(enumerate(_STATES.values(), 1))
"""The same by the numbers that MLflow's messages have."""
_ID = re.compile(r"[0-9a-f]{32}")
_LOGGED_MODELS = "mlflow.log-model.history"
_MODEL_FIELDS = ("artifact_path", "flavors", "utc_time_created", "run_id")
_NOTED_FIELDS = ("run_id", "artifact_path", "utc_time_created", "model_uuid")


class RunEndpoints:
    """Creates and changes runs."""

    def __init__(self, context: Context, updates: RunUpdates, messages: RunMessages) -> None:
        self._folder = context.folder
        self._store = context.store
        self._runs = context.store.mlflow_runs
        self._changes = context.changes
        self._updates = updates
        self._messages = messages

    def _choose_id(self, request: Request) -> str:
        """A new id, or the one that a copy of a run shall keep. MLflow's own clients give none."""
        given = request.text("run_id")
        if not given:
            return uuid.uuid4().hex
        if not _ID.fullmatch(given):
            raise MlflowError(WRONG, "Invalid run ID. It must have 32 hexadecimal digits.")
        if self._runs.find_head(given) is not None:
            raise MlflowError(EXISTS, f"Run with id={given} already exists.")
        return given

    @endpoint("POST", "runs/create")
    def create(self, request: Request) -> str:
        """Create a run, which is running from now on."""
        given, start_ms = request.text("experiment_id"), request.integer("start_time")
        if not given:
            raise MlflowError(BAD_REQUEST, "A run needs an experiment: the parameter 'experiment_id' is missing.")
        name, tags = request.text("run_name"), read_pairs("tags", request.objects("tags"))
        experiment = require_active_experiment(self._store.mlflow_experiments, given)
        name = _choose_name(name, tags)
        run_id = self._choose_id(request)
        folder = self._folder.run(run_id)
        folder.journals.mkdir(parents=True)
        folder.files.mkdir()
        made = self._runs.create(
            run_id,
            experiment.seq,
            name=name,
            user=request.text("user_id") or request.user,
            tags={**tags, RUN_NAME: name},
            at=(start_ms or 0) / 1000.0,
        )
        self._updates.begin(run_id)
        self._changes.note(run_id, "created", str(made.status))
        return f'{{"run":{self._messages.write([made.seq])[0]}}}'

    @endpoint("GET", "runs/get")
    def get(self, request: Request) -> str:
        """A run with its last values, parameters and tags."""
        head = require_run(self._runs, request.run_id())
        return f'{{"run":{self._messages.write([head.seq])[0]}}}'

    @endpoint("POST", "runs/update")
    def update(self, request: Request) -> str:
        """Change the state, the end or the name of a run."""
        run_id, name = request.run_id(), request.text("run_name")
        status, end_ms = _read_status(request), request.integer("end_time")
        head = require_active_run(self._runs, run_id)
        if head.type != MLFLOW_RUN:
            status, end_ms = _check_state(head, status), None
        self._runs.change(head, status=status, end_ms=end_ms, name=name, at=read_clock())
        if status is not None and status is not head.status:
            self._updates.announce(run_id)
        if name:
            self._changes.note(run_id, "labels")
        return f'{{"run_info":{self._messages.write_info(head.seq)}}}'

    @endpoint("POST", "runs/delete")
    def delete(self, request: Request) -> dict[str, Any]:
        """Delete a run. It can be restored."""
        return self._set_archived(request, time.time())

    @endpoint("POST", "runs/restore")
    def restore(self, request: Request) -> dict[str, Any]:
        """Restore a deleted run."""
        return self._set_archived(request, None)

    def _set_archived(self, request: Request, at: float | None) -> dict[str, Any]:
        head = require_run(self._runs, request.run_id())
        if at is not None and head.has_job and head.status not in TERMINAL:
            raise MlflowError(
                WRONG, f"The job of run {head.id} has not ended. Cancel it, or wait for it, before you delete it."
            )
        self._runs.set_archived(head.seq, at)
        self._changes.note(head.id, "labels")
        return {}

    @endpoint("POST", "runs/log-parameter", is_frequent=True)
    def log_parameter(self, request: Request) -> dict[str, Any]:
        """Log a parameter, which never changes."""
        run_id, key = request.run_id(), request.require_text("key")
        value = check_param(key, request.text("value"))
        for name, old, new in self._log(require_active_run(self._runs, run_id), params={key: value}):
            raise MlflowError(
                WRONG,
                f"Changing param values is not allowed. Param with key='{name}' was already logged with value='{old}' "
                f"for run ID='{run_id}'. Attempted logging new value '{new}'.",
            )
        return {}

    @endpoint("POST", "runs/set-tag", is_frequent=True)
    def set_tag(self, request: Request) -> dict[str, Any]:
        """Set a tag of a run."""
        run_id, key = request.run_id(), request.require_text("key")
        value = check_tag(key, request.text("value"))
        self._log(require_active_run(self._runs, run_id), tags={key: value})
        return {}

    @endpoint("POST", "runs/delete-tag")
    def delete_tag(self, request: Request) -> dict[str, Any]:
        """Remove a tag of a run."""
        run_id, key = request.run_id(), request.require_text("key")
        head = require_active_run(self._runs, run_id)
        if not self._runs.remove_tag(head.seq, key):
            raise MlflowError(ABSENT, f"No tag with name: {key} in run with id {run_id}")
        self._changes.note(run_id, "labels")
        return {}

    @endpoint("POST", "runs/log-model")
    def log_model(self, request: Request) -> dict[str, Any]:
        """Note in a tag that a model was logged, as older clients do."""
        run_id, text = request.run_id(), request.require_text("model_json")
        model = _read_model(text)
        head = require_active_run(self._runs, run_id)
        known = self._runs.get_tag(head.seq, _LOGGED_MODELS)
        # Never cut off, as other tags are: it has to stay JSON.
        self._log(head, tags={_LOGGED_MODELS: json.dumps([*_read_history(known), model])})
        return {}

    def log_all(self, run_id: str, params: Mapping[str, str], tags: Mapping[str, str]) -> None:
        """Log the parameters and tags of a run that has none yet."""
        self._log(require_active_run(self._runs, run_id), params, tags)

    def _log(
        self, head: RunHead, params: Mapping[str, str] | None = None, tags: Mapping[str, str] | None = None
    ) -> list[tuple[str, str, str]]:
        conflicts = self._runs.log(head, params or {}, tags or {})
        if not conflicts:
            self._changes.note(head.id, "labels")
        return conflicts


def require_run(runs: MlflowRuns, run_id: str) -> RunHead:
    """The run with this id, deleted or not."""
    head = runs.find_head(run_id)
    if head is None:
        raise MlflowError(ABSENT, f"Run with id={run_id} not found")
    return head


def require_active_run(runs: MlflowRuns, run_id: str) -> RunHead:
    """The run with this id, which must not be deleted."""
    head = require_run(runs, run_id)
    if head.archived_at is not None:
        raise MlflowError(WRONG, f"The run {run_id} must be in the 'active' state. Current state is deleted.")
    return head


def _choose_name(name: str, tags: Mapping[str, str]) -> str:
    tagged = tags.get(RUN_NAME, "")
    if name and tagged and name != tagged:
        raise MlflowError(
            WRONG,
            "Both 'run_name' argument and 'mlflow.runName' tag are specified, but with different values "
            f"(run_name='{name}', mlflow.runName='{tagged}').",
        )
    return name or tagged or choose_name()


def _read_status(request: Request) -> Status | None:
    given = request.arguments.get("status")
    if isinstance(given, int):
        if given not in _NUMBERS:
            raise wrong_value("status", given)
        return _NUMBERS[given]
    # MLflow's server ignores a name that it does not know.
    return _STATES.get(request.text("status"))


def _check_state(head: RunHead, status: Status | None) -> Status | None:
    """The state that a run gets that MLflow has not created. A terminal state stays, and a job has its own end."""
    if status is None or STATUS[status] == STATUS[head.status]:
        return None
    if head.status in TERMINAL:
        # Clients repeat a request that is answered with INVALID_STATE, for minutes, and then show no message.
        raise MlflowError(
            WRONG,
            f"The run {head.id} is {head.status} and stays so: only runs that MLflow's clients have created can be "
            "opened again. Start a new run, or log to this one without starting it.",
        )
    return status if status in TERMINAL and not head.has_job else None


def _read_model(text: str) -> dict[str, Any]:
    try:
        model = json.loads(text)
    except (ValueError, RecursionError):
        model = None
    if not isinstance(model, dict):
        raise MlflowError(WRONG, f"Malformed model info. \n {text} \n is not a valid JSON.")
    absent = {field for field in _MODEL_FIELDS if field not in model}
    if absent:
        raise MlflowError(WRONG, f"Model json is missing mandatory fields: {absent}")
    flavors = model["flavors"] if isinstance(model["flavors"], dict) else {}
    return {
        **{field: model.get(field) for field in _NOTED_FIELDS},
        "flavors": {name: _leave_out_config(settings) for name, settings in flavors.items()},
    }


def _leave_out_config(settings: Any) -> Any:
    return (
        {key: value for key, value in settings.items() if key != "config"} if isinstance(settings, dict) else settings
    )


def _read_history(text: str) -> list[Any]:
    """The models in the tag, which its user may have overwritten."""
    try:
        found = json.loads(text) if text else []
    except (ValueError, RecursionError):
        return []
    return found if isinstance(found, list) else []
