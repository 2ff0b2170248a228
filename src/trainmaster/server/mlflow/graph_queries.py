"""The GraphQL queries of MLflow's pages: a fixed table. Each is an endpoint of the REST API with other names."""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import orjson
from starlette.responses import Response

from trainmaster.dispatcher.mlflow.errors import NOT_IMPLEMENTED, WRONG, MlflowError
from trainmaster.server.answers import write_plain
from trainmaster.server.api.table import MEGABYTE, MLFLOW, Route
from trainmaster.server.call import Call
from trainmaster.server.mlflow.asking import ask_endpoint
from trainmaster.server.permissions import Permission

_ROOT = re.compile(r"\{\s*(?:__typename\s+)?(\w+)\s*\(")
_CAPITAL = re.compile(r"[A-Z]")
_NUMBERS = frozenset(
    ("startTime", "endTime", "creationTime", "lastUpdateTime", "creationTimestamp", "timestamp", "step", "fileSize")
)
"""64-bit integers, which GraphQL has as texts."""

_TYPES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "MlflowRunExtension": {
            "info": "MlflowRunInfo",
            "data": "MlflowRunData",
            "inputs": "MlflowRunInputs",
            "outputs": "MlflowRunOutputs",
            "experiment": "MlflowExperiment",
            "modelVersions": "[MlflowModelVersion",
        },
        "MlflowRunInfo": dict.fromkeys(
            (
                *("runId", "runUuid", "runName", "experimentId", "userId", "status", "startTime", "endTime"),
                *("artifactUri", "lifecycleStage"),
            ),
            "",
        ),
        "MlflowRunData": {
            "metrics": "[MlflowMetricExtension",
            "params": "[MlflowParam",
            "tags": "[MlflowRunTag",
        },
        "MlflowMetricExtension": dict.fromkeys(("key", "value", "timestamp", "step"), ""),
        "MlflowParam": {"key": "", "value": ""},
        "MlflowRunTag": {"key": "", "value": ""},
        "MlflowInputTag": {"key": "", "value": ""},
        "MlflowExperimentTag": {"key": "", "value": ""},
        "MlflowRunInputs": {"datasetInputs": "[MlflowDatasetInput", "modelInputs": "[MlflowModelInput"},
        "MlflowDatasetInput": {"dataset": "MlflowDataset", "tags": "[MlflowInputTag"},
        "MlflowDataset": dict.fromkeys(("name", "digest", "sourceType", "source", "schema", "profile"), ""),
        "MlflowModelInput": {"modelId": ""},
        "MlflowRunOutputs": {"modelOutputs": "[MlflowModelOutput"},
        "MlflowModelOutput": {"modelId": "", "step": ""},
        "MlflowExperiment": {
            **dict.fromkeys(("experimentId", "name", "artifactLocation", "lifecycleStage", "lastUpdateTime"), ""),
            "creationTime": "",
            "effectiveTraceArchivalRetention": "",
            "tags": "[MlflowExperimentTag",
        },
        "MlflowModelVersion": dict.fromkeys(("name", "version", "creationTimestamp", "status", "source"), ""),
        "MlflowMetricWithRunId": dict.fromkeys(("key", "value", "timestamp", "step", "runId"), ""),
        "MlflowFileInfo": dict.fromkeys(("path", "isDir", "fileSize"), ""),
        "MlflowGetRunResponse": {"run": "MlflowRunExtension"},
        "MlflowGetExperimentResponse": {"experiment": "MlflowExperiment"},
        "MlflowSearchRunsResponse": {"runs": "[MlflowRunExtension", "nextPageToken": ""},
        "MlflowGetMetricHistoryBulkIntervalResponse": {"metrics": "[MlflowMetricWithRunId"},
        "MlflowListArtifactsResponse": {"rootUri": "", "files": "[MlflowFileInfo", "nextPageToken": ""},
    }
)
"""Type to its fields, and the types of those: `[` begins a list, and nothing stands for a value."""

_Find = Callable[[Call, Mapping[str, Any]], Awaitable[Any]]


async def answer_query(call: Call) -> Response:
    """A query of MLflow's pages."""
    text = await call.request.body()
    try:
        asked = orjson.loads(text)
        root = _ROOT.search(asked["query"])
        variables = asked.get("variables") or {}
        given = variables.get("data") or variables.get("input") or {}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise MlflowError(WRONG, "The body is not a GraphQL query") from None
    name = root[1] if root else ""
    if name not in _QUERIES:
        raise MlflowError(NOT_IMPLEMENTED, f"The query '{name[:60]}' is not implemented by this server.")
    kind, find = _QUERIES[name]
    try:
        found = shape(kind, await find(call, {_write_name(key): value for key, value in given.items()}))
        found["apiError"] = None
    except MlflowError as error:
        found = shape(kind, {})
        found["apiError"] = {"__typename": "ApiError", "code": error.code, "message": error.message, "helpUrl": None}
    return Response(write_plain({"data": {name: found}, "errors": None}), media_type="application/json")


async def _find_run(call: Call, given: Mapping[str, Any]) -> Any:
    run_id = given.get("run_id") or given.get("run_uuid")
    found = await ask_endpoint(call, "GET", "runs/get", run_id=run_id)
    return {"run": await _complete_run(call, found["run"])}


async def _search_runs(call: Call, given: Mapping[str, Any]) -> Any:
    found = await ask_endpoint(call, "POST", "runs/search", **given)
    return {**found, "runs": [await _complete_run(call, run) for run in found.get("runs", ())]}


async def _complete_run(call: Call, run: Mapping[str, Any]) -> dict[str, Any]:
    """A run with its experiment and the versions of models that were registered from it."""
    info = run["info"]
    experiment = await ask_endpoint(call, "GET", "experiments/get", experiment_id=info["experiment_id"])
    versions = await ask_endpoint(call, "GET", "model-versions/search", filter=f"run_id='{info['run_id']}'")
    return {**run, **experiment, "model_versions": versions.get("model_versions", [])}


async def _find_experiment(call: Call, given: Mapping[str, Any]) -> Any:
    return await ask_endpoint(call, "GET", "experiments/get", **given)


async def _find_histories(call: Call, given: Mapping[str, Any]) -> Any:
    return await ask_endpoint(call, "GET", "metrics/get-history-bulk-interval", **given)


_QUERIES: Mapping[str, tuple[str, _Find]] = MappingProxyType(
    {
        "mlflowGetRun": ("MlflowGetRunResponse", _find_run),
        "mlflowGetExperiment": ("MlflowGetExperimentResponse", _find_experiment),
        "mlflowSearchRuns": ("MlflowSearchRunsResponse", _search_runs),
        "mlflowGetMetricHistoryBulkInterval": ("MlflowGetMetricHistoryBulkIntervalResponse", _find_histories),
    }
)


def shape(kind: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """A message of the REST API as an object of GraphQL: names in another form, and every field there.

    >>> shape("MlflowModelOutput", {"model_id": "m-1", "step": 3})
    {'__typename': 'MlflowModelOutput', 'modelId': 'm-1', 'step': '3'}
    """
    found: dict[str, Any] = {"__typename": kind}
    for name, below in _TYPES[kind].items():
        part = value.get(_write_name(name))
        if below.startswith("["):
            found[name] = [shape(below[1:], each) for each in part or ()]
        elif below:
            found[name] = None if part is None else shape(below, part)
        else:
            found[name] = _write_value(name, part)
    return found


def _write_value(name: str, value: Any) -> Any:
    if name in _NUMBERS and value is not None:
        return str(value)
    if value == "NaN" or (isinstance(value, float) and math.isnan(value)):
        return None if name == "value" else value
    return value


def _write_name(name: str) -> str:
    """`runUuid` as the REST API has it.

    >>> _write_name("runUuid")
    'run_uuid'
    """
    return _CAPITAL.sub(lambda sign: f"_{sign[0].lower()}", name)


def query_rows() -> Iterator[Route]:
    """The path of all queries."""
    for method in ("GET", "POST"):
        yield Route(
            method,
            f"{MLFLOW}/graphql",
            answer_query,
            Permission.READ,
            "MLflow: a query of its pages",
            "mlflow",
            largest_body=MEGABYTE,
            streams_body=True,
            ignores_query=True,
            is_mlflow=True,
            is_change=False,
        )
