"""The operation behind MLflow's REST API."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from trainmaster.dispatcher.api.models import ModelOperations
from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.mlflow.addresses import make_run_uri
from trainmaster.dispatcher.mlflow.artifact_reading import ArtifactReading
from trainmaster.dispatcher.mlflow.clock import read_clock
from trainmaster.dispatcher.mlflow.endpoints import Endpoint, Endpoints, endpoints_in, is_logging
from trainmaster.dispatcher.mlflow.errors import MlflowError, describe_error
from trainmaster.dispatcher.mlflow.experiments import ExperimentEndpoints
from trainmaster.dispatcher.mlflow.logged_models import LoggedModelEndpoints
from trainmaster.dispatcher.mlflow.metric_log import MetricLog
from trainmaster.dispatcher.mlflow.metrics import MetricEndpoints
from trainmaster.dispatcher.mlflow.model_versions import ModelVersionEndpoints
from trainmaster.dispatcher.mlflow.prompt_runs import PromptRunEndpoints
from trainmaster.dispatcher.mlflow.registered_models import RegisteredModelEndpoints
from trainmaster.dispatcher.mlflow.requests import Request
from trainmaster.dispatcher.mlflow.run_inputs import InputEndpoints
from trainmaster.dispatcher.mlflow.run_messages import RunMessages
from trainmaster.dispatcher.mlflow.runs import RunEndpoints
from trainmaster.dispatcher.mlflow.search import SearchEndpoints
from trainmaster.dispatcher.model_files import ModelFiles
from trainmaster.dispatcher.operation import JsonText, operation
from trainmaster.dispatcher.runs.updates import RunUpdates
from trainmaster.job.errors import ModelNotFoundException, ModelPathNotFoundException
from trainmaster.shared.records import MLFLOW_RUN

_PARTS = (
    ExperimentEndpoints,
    RunEndpoints,
    PromptRunEndpoints,
    InputEndpoints,
    MetricEndpoints,
    LoggedModelEndpoints,
    RegisteredModelEndpoints,
    ModelVersionEndpoints,
    SearchEndpoints,
)
"""The classes that have endpoints."""


@cache
def list_endpoints() -> tuple[Endpoint, ...]:
    """All endpoints, for those who only need their paths."""
    return tuple(endpoints_in(*_PARTS))


class MlflowOperations:
    """Answers requests of MLflow's clients."""

    def __init__(self, context: Context, updates: RunUpdates, metric_log: MetricLog, models: ModelOperations) -> None:
        names = RegisteredModelEndpoints(context.store, models)
        self._models = models
        self._store = context.store
        self._has_default = False
        self._addresses = context.store.run_addresses
        self._metric_log = metric_log
        self._reading = ArtifactReading(context.folder, context.store.run_addresses)
        messages = RunMessages(context.store)
        runs = RunEndpoints(context, updates, messages)
        self._endpoints = Endpoints(
            [
                ExperimentEndpoints(context.store, context.changes),
                runs,
                PromptRunEndpoints(context.folder, runs),
                InputEndpoints(context.store),
                MetricEndpoints(context.store, metric_log, context.changes),
                LoggedModelEndpoints(context.store),
                names,
                ModelVersionEndpoints(context.store, models, names, ModelFiles(context.store, context.folder)),
                SearchEndpoints(context.store, messages),
            ]
        )

    @operation("mlflow.call")
    async def call(self, method: str, path: str, arguments: Mapping[str, Any], user: str = "") -> dict[str, Any]:
        """The status and the JSON text that MLflow's server would answer. `path` is below `/api/`."""
        status, body = await self._answer(method, path, arguments, user)
        return {"status": status, "body": body.decode()}

    @operation("mlflow.answer")
    async def answer(
        self, method: str, path: str, arguments: Mapping[str, Any], user: str = "", workspace: str = ""
    ) -> JsonText:
        """The same for a server. The result is a list of the status and the body."""
        status, body = await self._answer(method, path, arguments, user, workspace)
        return JsonText(b"[%d, %s]" % (status, body))

    async def _answer(
        self, method: str, path: str, arguments: Mapping[str, Any], user: str, workspace: str = ""
    ) -> tuple[int, bytes]:
        if not self._has_default:
            # Only workspaces that MLflow is used with have its experiment.
            self._store.mlflow_experiments.create_default(read_clock())
            self._has_default = True
        try:
            handler, names = self._endpoints.find(method, path)
            if not is_logging(handler):
                # Every answer has all values that were logged before.
                await self._metric_log.bring_in(_find_run(arguments))
            answer = handler(Request({**arguments, **names}, user, names, workspace, method == "GET"))
            if isinstance(answer, Awaitable):
                answer = await answer
        except MlflowError as error:
            return error.status, _write(describe_error(error.code, error.message, error.error_class))
        return 200, _write(answer)

    @operation("mlflow.find_version")
    async def find_version(self, name: str, version: int) -> str | None:
        """The folder with the files of a version of a registered model; None if there is no such one, or no files."""
        try:
            found = Path((await self._models.locate(name, version))["path"])
        except (ModelNotFoundException, ModelPathNotFoundException):
            return None
        return str(found if await asyncio.to_thread(found.is_dir) else found.parent)

    @operation("mlflow.list_files")
    async def list_files(self, path: str) -> list[dict[str, Any]]:
        """What is in a folder of a run or logged model; `path` follows `mlflow-artifacts:/` in the address."""
        return await asyncio.to_thread(self._reading.list_folder, path)

    @operation("mlflow.read_file")
    async def read_file(self, path: str, offset: int, size: int) -> dict[str, Any]:
        """A piece of a file of a run or logged model, in base64."""
        return await asyncio.to_thread(self._reading.read, path, offset, size)

    @operation("mlflow.find_run")
    def find_run(self, run_id: str) -> dict[str, Any] | None:
        """Where MLflow's clients find the files of a run, and whether they may change them; None without such a run."""
        found = self._addresses.find(run_id)
        if found is None:
            return None
        uri = make_run_uri(found.experiment_id, run_id, found.location)
        return {"artifact_uri": uri, "may_change": found.type == MLFLOW_RUN}


def _write(answer: Any) -> bytes:
    """What a handler answers, as JSON."""
    if isinstance(answer, bytes):
        return answer
    return (answer if isinstance(answer, str) else json.dumps(answer)).encode()


def _find_run(arguments: Mapping[str, Any]) -> str | None:
    """The only run that a request is about, if it says so."""
    run_id = arguments.get("run_id")
    return run_id if isinstance(run_id, str) and run_id else None
