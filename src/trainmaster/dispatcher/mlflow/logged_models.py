"""Logged models: what `log_model` of MLflow 3 makes. They need not be registered."""

from __future__ import annotations

import asyncio
import math
import re
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from trainmaster.dispatcher.mlflow.addresses import make_model_uri, make_run_uri
from trainmaster.dispatcher.mlflow.endpoints import endpoint
from trainmaster.dispatcher.mlflow.errors import ABSENT, BAD_REQUEST, EXISTS, WRONG, MlflowError
from trainmaster.dispatcher.mlflow.logged_model_queries import make_token, read_query
from trainmaster.dispatcher.mlflow.requests import Request, missing
from trainmaster.dispatcher.mlflow.run_inputs import read_experiment_id
from trainmaster.dispatcher.mlflow.run_names import choose_name
from trainmaster.dispatcher.store import Store
from trainmaster.dispatcher.store.logged_models import (
    FAILED,
    PENDING,
    READY,
    UNSPECIFIED,
    LoggedModel,
    ModelMetric,
)
from trainmaster.job.script.mlflow.tags import FILES_IN_RUN

_STATES = {
    UNSPECIFIED: "LOGGED_MODEL_STATUS_UNSPECIFIED",
    PENDING: "LOGGED_MODEL_PENDING",
    READY: "LOGGED_MODEL_READY",
    FAILED: "LOGGED_MODEL_UPLOAD_FAILED",
}
_NUMBERS = {name: number for number, name in _STATES.items()}
_ID = re.compile(r"m-[0-9a-f]{32}")
_FORBIDDEN = ("/", ":", ".", "%", '"', "'")
_LONGEST_NAME = 500
_LONGEST_KEY = 255
_LARGEST = sys.float_info.max


class LoggedModelEndpoints:
    """Creates, changes and finds logged models."""

    def __init__(self, store: Store) -> None:
        self._models = store.logged_models
        self._search = store.logged_model_search

    @endpoint("POST", "logged-models")
    async def create(self, request: Request) -> dict[str, Any]:
        """Create a model. Its files are uploaded afterwards."""
        experiment_id = request.require_text("experiment_id")
        name = check_name(request.text("name"))
        source_run_id = request.text("source_run_id")
        if len(source_run_id) > _LONGEST_KEY:
            raise _refuse_length("source_run_id", _LONGEST_KEY)
        params, tags = _read_labels(request, "params"), _read_labels(request, "tags")
        self._require_experiment(experiment_id)
        now = int(time.time() * 1000)
        model_id = await self._choose_id(request)
        model = LoggedModel(
            model_id,
            str(int(experiment_id)),
            name or choose_name(),
            now,
            now,
            type=request.text("model_type"),
            source_run_id=source_run_id,
            params=params,
            tags=tags,
        )
        return {"model": describe_model(await asyncio.to_thread(self._models.create, model))}

    async def _choose_id(self, request: Request) -> str:
        """A new id, or the one that a copy of a model shall keep. MLflow's own clients give none."""
        given = request.text("model_id")
        if not given:
            return f"m-{uuid.uuid4().hex}"
        if not _ID.fullmatch(given):
            raise MlflowError(WRONG, "Invalid model ID. It must be 'm-' with 32 hexadecimal digits.")
        if await self._get(given, even_deleted=True) is not None:
            raise MlflowError(EXISTS, f"Logged model with ID '{given}' already exists.")
        return given

    @endpoint("GET", "logged-models/{model_id}")
    async def get(self, request: Request) -> dict[str, Any]:
        """The model with this id."""
        even_deleted = str(request.arguments.get("allow_deleted", "")).lower() == "true"
        model_id = request.names["model_id"]
        return {"model": describe_model(_require(await self._get(model_id, even_deleted), model_id))}

    @endpoint("PATCH", "logged-models/{model_id}")
    async def finalize(self, request: Request) -> dict[str, Any]:
        """Say that all files of a model are uploaded, or could not be."""
        model_id = request.names["model_id"]
        status = request.arguments.get("status")
        if status is None or status == "":
            raise missing("status")
        now = int(time.time() * 1000)
        found = await asyncio.to_thread(self._models.set_status, model_id, _read_status(status), now)
        return {"model": describe_model(_require(found, model_id))}

    @endpoint("DELETE", "logged-models/{model_id}")
    async def delete(self, request: Request) -> dict[str, Any]:
        """Hide a model."""
        model_id = request.names["model_id"]
        if not await asyncio.to_thread(self._models.delete, model_id, time.time()):
            raise refuse_unknown(model_id)
        return {}

    @endpoint("POST", "logged-models/{model_id}/params")
    async def log_params(self, request: Request) -> dict[str, Any]:
        """Add parameters, which cannot be changed."""
        model_id = request.names["model_id"]
        found = await asyncio.to_thread(self._models.add_params, model_id, _read_labels(request, "params"))
        if found is False:
            raise refuse_unknown(model_id)
        if isinstance(found, str):
            raise MlflowError(BAD_REQUEST, f"The logged model '{model_id}' already has the parameter '{found}'.")
        return {}

    @endpoint("PATCH", "logged-models/{model_id}/tags")
    async def set_tags(self, request: Request) -> dict[str, Any]:
        """Set tags."""
        model_id = request.names["model_id"]
        tags = dict(_read_pairs(request, "tags"))
        if not await asyncio.to_thread(self._models.set_tags, model_id, tags):
            raise refuse_unknown(model_id)
        return {}

    @endpoint("DELETE", "logged-models/{model_id}/tags/{tag_key}")
    async def delete_tag(self, request: Request) -> dict[str, Any]:
        """Delete a tag."""
        model_id, key = request.names["model_id"], request.names["tag_key"]
        found = await asyncio.to_thread(self._models.delete_tag, model_id, key)
        if found is None:
            raise refuse_unknown(model_id)
        if not found:
            raise MlflowError(ABSENT, f"No tag with key {key!r} found for model with ID {model_id!r}.")
        return {}

    @endpoint("POST", "logged-models/search", changes=False)
    async def search(self, request: Request) -> dict[str, Any]:
        """A page of the models of experiments."""
        asked = read_query(request)
        found = await asyncio.to_thread(self._search.find, asked.query)
        page = found[: asked.limit]
        answer: dict[str, Any] = {"models": [describe_model(model) for model in page]} if page else {}
        if len(found) > asked.limit:
            answer["next_page_token"] = make_token(asked)
        return answer

    async def _get(self, model_id: str, even_deleted: bool) -> LoggedModel | None:
        return await asyncio.to_thread(self._models.get, model_id, even_deleted)

    def _require_experiment(self, experiment_id: str) -> None:
        found = self._models.find_experiment(read_experiment_id(experiment_id))
        if found is None:
            raise MlflowError(ABSENT, f"No Experiment with id={experiment_id} exists")
        if found.is_archived:
            raise MlflowError(
                WRONG, f"The experiment {experiment_id} must be in the 'active' state. Current state is deleted."
            )


def check_name(name: str) -> str:
    """The name of a model; empty if it has to be chosen."""
    if any(each in name for each in _FORBIDDEN):
        raise MlflowError(
            WRONG,
            f"Invalid model name ({name!r}) provided. Model name must be a non-empty string and cannot contain the "
            f"following characters: {_FORBIDDEN}",
        )
    if len(name) > _LONGEST_NAME:
        raise _refuse_length("name", _LONGEST_NAME)
    return name


def _read_labels(request: Request, name: str) -> dict[str, str]:
    """Parameters or tags, of which none may be given twice."""
    found: dict[str, str] = {}
    for key, value in _read_pairs(request, name):
        if key in found:
            raise MlflowError(BAD_REQUEST, f"Duplicate key '{key}' in '{name}'.")
        found[key] = value
    return found


def _read_pairs(request: Request, name: str) -> list[tuple[str, str]]:
    return [_read_pair(entry) for entry in request.objects(name)]


def _read_pair(entry: Mapping[str, Any]) -> tuple[str, str]:
    # As MLflow: what is no text counts as not given.
    key, value = (text if isinstance(text := entry.get(each), str) else "" for each in ("key", "value"))
    if len(key) > _LONGEST_KEY:
        raise _refuse_length("key", _LONGEST_KEY)
    return key, value


def _read_status(status: Any) -> int:
    """The number of a state. As in MLflow, an unknown one is unspecified."""
    if isinstance(status, str) and not status.isdecimal():
        return _NUMBERS.get(status, UNSPECIFIED)
    try:
        number = int(status)
    except (TypeError, ValueError, OverflowError):
        return UNSPECIFIED
    return number if number in _STATES else UNSPECIFIED


def _refuse_length(name: str, longest: int) -> MlflowError:
    return MlflowError(WRONG, f"'{name}' exceeds the maximum length of {longest} characters")


def refuse_unknown(model_id: str) -> MlflowError:
    """The error for a model that does not exist."""
    return MlflowError(ABSENT, f"Logged model with ID '{model_id}' not found.")


def _require(model: LoggedModel | None, model_id: str) -> LoggedModel:
    if model is None:
        raise refuse_unknown(model_id)
    return model


# Messages


def _find_uri(model: LoggedModel) -> str:
    """The files of a model that a job has logged are among those of its run, which come from wherever it runs."""
    files = model.tags.get(FILES_IN_RUN)
    if files and model.source_run_id:
        return f"{make_run_uri(model.experiment_id, model.source_run_id)}/{files}"
    return make_model_uri(model.experiment_id, model.id, model.location)


def describe_model(model: LoggedModel) -> dict[str, Any]:
    """A model as MLflow's clients read it."""
    info: dict[str, Any] = {
        "model_id": model.id,
        "experiment_id": model.experiment_id,
        "name": model.name,
        "creation_timestamp_ms": model.created_ms,
        "last_updated_timestamp_ms": model.modified_ms,
        "artifact_uri": _find_uri(model),
        "status": _STATES[model.status],
    }
    for name, value in (
        ("model_type", model.type),
        ("source_run_id", model.source_run_id),
        ("status_message", model.status_message),
    ):
        if value is not None:
            info[name] = value
    if model.tags:
        info["tags"] = _describe_labels(model.tags)
    data: dict[str, Any] = {}
    if model.params:
        data["params"] = _describe_labels(model.params)
    if model.metrics:
        data["metrics"] = _describe_metrics(model.id, model.metrics)
    return {"info": info, "data": data}


def _describe_labels(labels: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in labels.items()]


def _describe_metrics(model_id: str, metrics: Sequence[ModelMetric]) -> list[dict[str, Any]]:
    return [
        {
            "key": metric.name,
            "value": "NaN" if math.isnan(metric.value) else max(-_LARGEST, min(_LARGEST, metric.value)),
            "timestamp": metric.time_ms,
            "step": metric.step,
            **({} if metric.dataset_name is None else {"dataset_name": metric.dataset_name}),
            **({} if metric.dataset_digest is None else {"dataset_digest": metric.dataset_digest}),
            "model_id": model_id,
            "run_id": metric.run_id,
        }
        for metric in metrics
    ]
