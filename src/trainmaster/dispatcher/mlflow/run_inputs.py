"""Datasets and logged models that a run has read, and logged models that it has made."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from trainmaster.dispatcher.mlflow.endpoints import endpoint
from trainmaster.dispatcher.mlflow.errors import ABSENT, BAD_REQUEST, WRONG, MlflowError
from trainmaster.dispatcher.mlflow.requests import Request, missing, read_integer
from trainmaster.dispatcher.store import Store
from trainmaster.dispatcher.store.run_inputs import (
    DatasetInput,
    DatasetUse,
    InputDataset,
    LinkedRun,
    ModelOutput,
    RunLinks,
)

_LONGEST = {"name": 500, "digest": 36, "source": 65_535, "schema": 1_048_575, "profile": 16_777_215}
_LONGEST_TAG = {"key": 255, "value": 500}
_LONGEST_MODEL_ID = 255
_MOST_EXPERIMENTS = 20
_MOST_USES = 1000

NO_LINKS = RunLinks()


class InputEndpoints:
    """Inputs and outputs of runs."""

    def __init__(self, store: Store) -> None:
        self._inputs = store.run_inputs

    @endpoint("POST", "runs/log-inputs")
    async def log_inputs(self, request: Request) -> dict[str, Any]:
        """Say which datasets and models a run has read."""
        run_id = request.require_text("run_id")
        datasets = [read_dataset_input(each) for each in request.objects("datasets")]
        models = [_read_model_id(each) for each in request.objects("models")]
        await asyncio.to_thread(self._inputs.add, self._require_active(run_id), datasets, models)
        return {}

    @endpoint("POST", "runs/outputs")
    async def log_outputs(self, request: Request) -> dict[str, Any]:
        """Say which models a run has made."""
        run_id = request.require_text("run_id")
        if not request.has("models"):
            raise missing("models")
        models = [ModelOutput(_read_model_id(each), _read_step(each)) for each in request.objects("models")]
        run = self._require_active(run_id)
        known = await asyncio.to_thread(self._inputs.add_outputs, run, models)
        if known is not None:
            raise MlflowError(BAD_REQUEST, f"The run {run_id} already has the output '{known}'.")
        return {}

    @endpoint("POST", "experiments/search-datasets", changes=False, only_for_pages=True)
    async def search_datasets(self, request: Request) -> dict[str, Any]:
        """The datasets of experiments."""
        experiment_ids = request.texts("experiment_ids")
        if not experiment_ids:
            raise MlflowError(WRONG, "SearchDatasets request must specify at least one experiment_id.")
        if len(experiment_ids) > _MOST_EXPERIMENTS:
            count = len(experiment_ids)
            raise MlflowError(
                WRONG,
                f"SearchDatasets request cannot specify more than {_MOST_EXPERIMENTS} experiment_ids. "
                f"Received {count} experiment_ids.",
            )
        seqs = [read_experiment_id(each) for each in experiment_ids]
        found = await asyncio.to_thread(self._inputs.list_uses, seqs, _MOST_USES)
        return {"dataset_summaries": [_describe_use(each) for each in found]} if found else {}

    def _require_active(self, run_id: str) -> LinkedRun:
        run = self._inputs.find_run(run_id)
        if run is None:
            raise MlflowError(ABSENT, f"Run with id={run_id} not found")
        if run.is_archived:
            raise MlflowError(WRONG, f"The run {run_id} must be in the 'active' state. Current state is deleted.")
        return run


def read_experiment_id(text: str) -> int:
    """The number that an id of an experiment is."""
    try:
        number = int(text)
    except ValueError:
        number = -1
    if not 0 <= number < 2**63:
        raise MlflowError(WRONG, f"Invalid experiment ID '{text[:100]}'. Experiment ID must be a valid integer.")
    return number


def read_dataset_input(fields: Mapping[str, Any]) -> DatasetInput:
    """A dataset with tags, from a request."""
    given = fields.get("dataset")
    dataset = given if isinstance(given, Mapping) else {}
    texts = [_read_text(dataset, name, _LONGEST) for name in ("name", "digest", "source_type", "source")]
    more = [_read_text(dataset, name, _LONGEST) if name in dataset else None for name in ("schema", "profile")]
    tags: dict[str, str] = {}
    entries = fields.get("tags")
    for entry in entries if isinstance(entries, Sequence) else ():
        entry = entry if isinstance(entry, Mapping) else {}
        key, value = (_read_text(entry, name, _LONGEST_TAG) for name in ("key", "value"))
        if key in tags:
            raise MlflowError(BAD_REQUEST, f"Duplicate tag '{key}' of the dataset '{texts[0]}'.")
        tags[key] = value
    return DatasetInput(InputDataset(*texts, *more), tags)


def _read_text(fields: Mapping[str, Any], name: str, longest: Mapping[str, int]) -> str:
    value = fields.get(name)
    # As MLflow: what is no text counts as not given.
    text = value if isinstance(value, str) else ""
    if len(text) > longest.get(name, len(text)):
        raise MlflowError(WRONG, f"'{name}' exceeds the maximum length of {longest[name]} characters")
    return text


def _read_model_id(fields: Mapping[str, Any]) -> str:
    return _read_text(fields, "model_id", {"model_id": _LONGEST_MODEL_ID})


def _read_step(fields: Mapping[str, Any]) -> int:
    step = fields.get("step")
    return 0 if step is None else read_integer("step", step)


def _describe_use(use: DatasetUse) -> dict[str, str]:
    found = {"experiment_id": use.experiment_id, "name": use.name, "digest": use.digest}
    return {**found, "context": use.context} if use.context else found


# Messages


def describe_inputs(links: RunLinks, with_models: bool = True) -> dict[str, Any]:
    """The inputs of a run. MLflow leaves models out where it answers many runs."""
    found: dict[str, Any] = {}
    if links.datasets:
        found["dataset_inputs"] = [_describe_input(each) for each in links.datasets]
    if links.models_in and with_models:
        found["model_inputs"] = [{"model_id": model_id} for model_id in links.models_in]
    return found


def describe_outputs(links: RunLinks) -> dict[str, Any]:
    """The outputs of a run."""
    if not links.models_out:
        return {}
    return {"model_outputs": [{"model_id": each.model_id, "step": each.step} for each in links.models_out]}


def _describe_input(given: DatasetInput) -> dict[str, Any]:
    dataset = given.dataset
    described = {
        "name": dataset.name,
        "digest": dataset.digest,
        "source_type": dataset.source_type,
        "source": dataset.source,
    }
    if dataset.schema:
        described["schema"] = dataset.schema
    if dataset.profile:
        described["profile"] = dataset.profile
    tags = [{"key": key, "value": value} for key, value in sorted(given.tags.items())]
    return {**({"tags": tags} if tags else {}), "dataset": described}
