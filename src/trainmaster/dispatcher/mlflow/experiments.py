"""Experiments. MLflow's id of an experiment is the number of its row; "0" is the experiment "Default"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainmaster.dispatcher.mlflow.addresses import make_location
from trainmaster.dispatcher.mlflow.checks import check_experiment_name, check_experiment_tag, read_pairs
from trainmaster.dispatcher.mlflow.clock import read_clock
from trainmaster.dispatcher.mlflow.endpoints import endpoint
from trainmaster.dispatcher.mlflow.errors import ABSENT, BAD_REQUEST, EXISTS, WRONG, WRONG_STATE, MlflowError
from trainmaster.dispatcher.mlflow.locations import check_location
from trainmaster.dispatcher.mlflow.requests import Request
from trainmaster.dispatcher.runs.changes import Changes
from trainmaster.dispatcher.store import Store
from trainmaster.dispatcher.store.mlflow_experiments import (
    DEFAULT_NAME,
    DEFAULT_SEQ,
    MlflowExperiment,
    MlflowExperiments,
)

# What fits into the column; no row has a larger number.
_LARGEST_ID = 2**63 - 1
_VIEW, _MOST_VIEWS = "mlflow.customView.view", 50
"""The beginning of tags in which MLflow's pages keep views of an experiment."""


class ExperimentEndpoints:
    """Creates, finds and changes experiments."""

    def __init__(self, store: Store, changes: Changes) -> None:
        self._experiments = store.mlflow_experiments
        self._changes = changes

    @endpoint("POST", "experiments/create")
    def create(self, request: Request) -> dict[str, Any]:
        """Create an experiment."""
        name = request.require_text("name")
        location = request.text("artifact_location")
        tags = read_pairs("tags", request.objects("tags"))
        if _count_views(tags) > _MOST_VIEWS:
            raise _too_many_views()
        if location:
            location = check_location(location)
        check_experiment_name(name)
        for key, value in tags.items():
            check_experiment_tag(key, value)
        made = self._experiments.create(name, tags, location, read_clock())
        if made is None:
            raise MlflowError(EXISTS, f"Experiment(name={name}) already exists.")
        return {"experiment_id": str(made.seq)}

    @endpoint("GET", "experiments/get")
    def get(self, request: Request) -> dict[str, Any]:
        """The experiment with an id."""
        found = require_experiment(self._experiments, request.require_text("experiment_id"))
        return {"experiment": describe_experiment(found, request.workspace)}

    @endpoint("GET", "experiments/get-by-name")
    def get_by_name(self, request: Request) -> dict[str, Any]:
        """The experiment with a name."""
        name = request.require_text("experiment_name")
        found = self._experiments.find_by_name(name)
        if found is None:
            raise MlflowError(ABSENT, f"Could not find experiment with name '{name}'")
        return {"experiment": describe_experiment(found, request.workspace)}

    @endpoint("POST", "experiments/update")
    def update(self, request: Request) -> dict[str, Any]:
        """Rename an experiment."""
        given, name = request.require_text("experiment_id"), request.require_text("new_name")
        check_experiment_name(name)
        found = require_experiment(self._experiments, given)
        if found.archived_at is not None:
            raise MlflowError(WRONG_STATE, "Cannot rename a non-active experiment.")
        if not self._experiments.rename(found.seq, name, read_clock()):
            raise MlflowError(BAD_REQUEST, f"Experiment(name={name}) already exists.")
        return {}

    @endpoint("POST", "experiments/delete")
    def delete(self, request: Request) -> dict[str, Any]:
        """Delete an experiment and its runs. They can be restored."""
        return self._set_archived(request, read_clock())

    @endpoint("POST", "experiments/restore")
    def restore(self, request: Request) -> dict[str, Any]:
        """Restore a deleted experiment and its runs."""
        return self._set_archived(request, None)

    def _set_archived(self, request: Request, at: float | None) -> dict[str, Any]:
        found = require_experiment(self._experiments, request.require_text("experiment_id"))
        if (found.archived_at is None) != (at is not None):
            raise _no_such_experiment(found.seq)
        for run_id in self._experiments.set_archived(found.seq, at, read_clock()):
            self._changes.note(run_id, "labels")
        return {}

    @endpoint("POST", "experiments/set-experiment-tag")
    def set_tag(self, request: Request) -> dict[str, Any]:
        """Set a tag of an experiment."""
        given, key, value = request.require_text("experiment_id"), request.require_text("key"), request.text("value")
        if key.startswith(_VIEW):
            known = require_experiment(self._experiments, given)
            if key not in known.tags and _count_views(known.tags) >= _MOST_VIEWS:
                raise _too_many_views(f" for experiment {known.seq}")
        check_experiment_tag(key, value)
        self._experiments.set_tag(self._require_active(given).seq, key, value)
        return {}

    @endpoint("POST", "experiments/delete-experiment-tag")
    def delete_tag(self, request: Request) -> dict[str, Any]:
        """Remove a tag of an experiment."""
        given, key = request.require_text("experiment_id"), request.require_text("key")
        if not self._experiments.remove_tag(self._require_active(given).seq, key):
            raise MlflowError(ABSENT, f"No tag with name: {key} in experiment with id {given}")
        return {}

    def _require_active(self, experiment_id: str) -> MlflowExperiment:
        return require_active_experiment(self._experiments, experiment_id)


def read_experiment_id(text: str) -> int:
    """The number in an id, which may not be that of any experiment."""
    try:
        return int(text)
    except ValueError:
        raise MlflowError(WRONG, f"Invalid experiment ID '{text}'. Experiment ID must be a valid integer.") from None


def require_experiment(experiments: MlflowExperiments, experiment_id: str) -> MlflowExperiment:
    """The experiment with this id, deleted or not."""
    seq = read_experiment_id(experiment_id)
    found = experiments.find(seq) if abs(seq) <= _LARGEST_ID else None
    if found is None and seq == DEFAULT_SEQ:
        # An experiment of this name was there before MLflow's.
        found = experiments.find_by_name(DEFAULT_NAME)
    if found is None:
        raise _no_such_experiment(seq)
    return found


def require_active_experiment(experiments: MlflowExperiments, experiment_id: str) -> MlflowExperiment:
    """The experiment with this id, which must not be deleted."""
    found = require_experiment(experiments, experiment_id)
    if found.archived_at is not None:
        raise MlflowError(WRONG, f"The experiment {found.seq} must be in the 'active' state. Current state is deleted.")
    return found


def describe_experiment(found: MlflowExperiment, workspace: str = "") -> dict[str, Any]:
    """An experiment as MLflow's clients read it."""
    return {
        "experiment_id": str(found.seq),
        "name": found.name,
        "artifact_location": make_location(str(found.seq), found.artifact_location),
        "lifecycle_stage": "active" if found.archived_at is None else "deleted",
        "last_update_time": round(found.modified_at * 1000),
        "creation_time": round(found.created_at * 1000),
        **({"workspace": workspace} if workspace else {}),
        **({"tags": [{"key": key, "value": value} for key, value in found.tags.items()]} if found.tags else {}),
    }


def _count_views(tags: Mapping[str, str]) -> int:
    return sum(key.startswith(_VIEW) for key in tags)


def _too_many_views(where: str = "") -> MlflowError:
    return MlflowError(
        WRONG,
        f"Unable to create another custom view{where}; the maximum number of custom views per experiment is "
        f"{_MOST_VIEWS}. Delete an existing custom view before creating a new one.",
    )


def _no_such_experiment(seq: int) -> MlflowError:
    return MlflowError(ABSENT, f"No Experiment with id={seq} exists")
