"""MLflow's GraphQL queries: a fixed table of roots. Each is an endpoint of the REST API with other names."""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import orjson
from starlette.responses import Response

from trainmaster.dispatcher.mlflow.errors import WRONG, MlflowError
from trainmaster.server.answers import write_plain
from trainmaster.server.api.table import MEGABYTE, MLFLOW, Route
from trainmaster.server.call import Call
from trainmaster.server.mlflow.artifacts import describe_run_folder
from trainmaster.server.mlflow.asking import ask_endpoint
from trainmaster.server.mlflow.graph_language import Query, QueryError, Selection, read_query
from trainmaster.server.permissions import Permission

_CAPITAL = re.compile(r"[A-Z]")
_TEXT, _LONG, _FLOAT, _FLAG, _TEXTS = "", "0", "0.0", "false", "[]"
"""Kinds of values. A long integer is a text in GraphQL."""


def _fields(texts: str = "", longs: str = "", **more: str) -> Mapping[str, str]:
    return {**dict.fromkeys(texts.split(), _TEXT), **dict.fromkeys(longs.split(), _LONG), **more}


_TYPES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "MlflowRunExtension": _fields(
            info="MlflowRunInfo",
            data="MlflowRunData",
            inputs="MlflowRunInputs",
            outputs="MlflowRunOutputs",
            experiment="MlflowExperiment",
            modelVersions="[MlflowModelVersion",
        ),
        "MlflowRunInfo": _fields(
            "runId runUuid runName experimentId userId status artifactUri lifecycleStage", "startTime endTime"
        ),
        "MlflowRunData": _fields(metrics="[MlflowMetricExtension", params="[MlflowParam", tags="[MlflowRunTag"),
        "MlflowMetricExtension": _fields("key datasetName datasetDigest modelId runId", "timestamp step", value=_FLOAT),
        "MlflowModelMetric": _fields("key datasetName datasetDigest modelId runId", "timestamp step", value=_FLOAT),
        "MlflowMetricWithRunId": _fields("key runId", "timestamp step", value=_FLOAT),
        "MlflowParam": _fields("key value"),
        "MlflowModelParam": _fields("name value"),
        "MlflowRunTag": _fields("key value"),
        "MlflowInputTag": _fields("key value"),
        "MlflowExperimentTag": _fields("key value"),
        "MlflowModelVersionTag": _fields("key value"),
        "MlflowRunInputs": _fields(datasetInputs="[MlflowDatasetInput", modelInputs="[MlflowModelInput"),
        "MlflowDatasetInput": _fields(dataset="MlflowDataset", tags="[MlflowInputTag"),
        "MlflowDataset": _fields("name digest sourceType source schema profile"),
        "MlflowDatasetSummary": _fields("experimentId name digest context"),
        "MlflowModelInput": _fields("modelId"),
        "MlflowRunOutputs": _fields(modelOutputs="[MlflowModelOutput"),
        "MlflowModelOutput": _fields("modelId", "step"),
        "MlflowExperiment": _fields(
            "experimentId name artifactLocation lifecycleStage effectiveTraceArchivalRetention workspace",
            "creationTime lastUpdateTime",
            tags="[MlflowExperimentTag",
        ),
        "MlflowModelVersion": _fields(
            "name version userId currentStage description source runId status statusMessage runLink modelId",
            "creationTimestamp lastUpdatedTimestamp",
            tags="[MlflowModelVersionTag",
            aliases=_TEXTS,
            modelParams="[MlflowModelParam",
            modelMetrics="[MlflowModelMetric",
        ),
        "MlflowFileInfo": _fields("path", "fileSize", isDir=_FLAG),
        "MlflowGetRunResponse": _fields(run="MlflowRunExtension", apiError="ApiError"),
        "MlflowGetExperimentResponse": _fields(experiment="MlflowExperiment", apiError="ApiError"),
        "MlflowSearchRunsResponse": _fields("nextPageToken", runs="[MlflowRunExtension", apiError="ApiError"),
        "MlflowGetMetricHistoryBulkIntervalResponse": _fields(metrics="[MlflowMetricWithRunId", apiError="ApiError"),
        "MlflowListArtifactsResponse": _fields("rootUri nextPageToken", files="[MlflowFileInfo", apiError="ApiError"),
        "MlflowSearchDatasetsResponse": _fields(datasetSummaries="[MlflowDatasetSummary", apiError="ApiError"),
        "MlflowSearchModelVersionsResponse": _fields(
            "nextPageToken", modelVersions="[MlflowModelVersion", apiError="ApiError"
        ),
        "ApiError": _fields("code message helpUrl traceId"),
        "Test": _fields("output"),
        "TestMutation": _fields("output"),
    }
)
"""Type to its fields, and the kinds of those: `[` begins a list of a type, and another name is a type."""

_Selections = tuple[Selection, ...]
_Find = Callable[[Call, Mapping[str, Any], _Selections], Awaitable[Any]]


async def answer_query(call: Call) -> Response:
    """A query of MLflow's pages, or of a program."""
    text = await call.request.body()
    try:
        asked = orjson.loads(text)
        words, variables = str(asked["query"]), dict(asked.get("variables") or {})
        operation = str(asked.get("operationName") or "")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise MlflowError(WRONG, "The body is not a GraphQL query") from None
    problems: list[str] = []
    try:
        data = await _execute(call, read_query(words, variables, operation), problems)
    except QueryError as error:
        data, problems = None, [str(error)]
    return Response(write_plain({"data": data, "errors": problems or None}), media_type="application/json")


async def _execute(call: Call, query: Query, problems: list[str]) -> dict[str, Any] | None:
    for each in query.selections:
        _check(each, query.kind)
    return {each.key: await _find_root(call, each, query.kind, problems) for each in query.selections}


async def _find_root(call: Call, root: Selection, query_kind: str, problems: list[str]) -> Any:
    if root.name == "__typename":
        return query_kind.capitalize()
    kind, find, _ = _ROOTS[root.name]
    given = root.arguments.get("input", root.arguments)
    if not isinstance(given, Mapping):
        given = {}
    try:
        found = await find(call, {_write_name(key): value for key, value in given.items()}, root.below)
    except MlflowError as error:
        if not any(each.name == "apiError" for each in root.below):
            problems.append(error.message)
            return None
        # MLflow's pages show it.
        described = {"code": error.code, "message": error.message}
        return {
            each.key: shape("ApiError", described, each.below) if each.name == "apiError" else None
            for each in root.below
        }
    return shape(kind, found, root.below)


def _check(root: Selection, query_kind: str) -> None:
    """Refuse fields that there are not, before anything is done."""
    if root.name == "__typename":
        return
    if root.name not in _ROOTS or query_kind not in _ROOTS[root.name][2]:
        raise QueryError(f"Cannot query field '{root.name[:60]}' on type '{query_kind.capitalize()}'.")
    _check_fields(_ROOTS[root.name][0], root)


def _check_fields(kind: str, asked: Selection) -> None:
    if not asked.below:
        raise QueryError(
            f"Field '{asked.name}' of type '{kind}' must have a selection of subfields. "
            f"Did you mean '{asked.name} {{ ... }}'?"
        )
    for each in asked.below:
        if each.name == "__typename":
            continue
        below = _TYPES[kind].get(each.name)
        if below is None:
            raise QueryError(f"Cannot query field '{each.name[:60]}' on type '{kind}'.")
        if below.lstrip("[") in _TYPES:
            _check_fields(below.lstrip("["), each)
        elif each.below:
            raise QueryError(f"Field '{each.name}' must not have a selection since it has no subfields.")


async def _find_run(call: Call, given: Mapping[str, Any], asked: _Selections) -> Any:
    run_id = given.get("run_id") or given.get("run_uuid")
    found = await ask_endpoint(call, "GET", "runs/get", run_id=run_id)
    return {"run": await _complete_run(call, found["run"], asked)}


async def _search_runs(call: Call, given: Mapping[str, Any], asked: _Selections) -> Any:
    found = await ask_endpoint(call, "POST", "runs/search", **given)
    return {**found, "runs": [await _complete_run(call, run, asked) for run in found.get("runs", ())]}


async def _complete_run(call: Call, run: Mapping[str, Any], asked: _Selections) -> dict[str, Any]:
    """A run with what is asked of its experiment and of the versions of models that were registered from it."""
    info, further = run["info"], {below.name for each in asked for below in each.below}
    found = dict(run)
    if "experiment" in further:
        found |= await ask_endpoint(call, "GET", "experiments/get", experiment_id=info["experiment_id"])
    if "modelVersions" in further:
        found |= await ask_endpoint(call, "GET", "model-versions/search", filter=f"run_id='{info['run_id']}'")
    return found


async def _find_experiment(call: Call, given: Mapping[str, Any], _: _Selections) -> Any:
    return await ask_endpoint(call, "GET", "experiments/get", **given)


async def _find_histories(call: Call, given: Mapping[str, Any], _: _Selections) -> Any:
    return await ask_endpoint(call, "GET", "metrics/get-history-bulk-interval", **given)


async def _find_versions(call: Call, given: Mapping[str, Any], _: _Selections) -> Any:
    return await ask_endpoint(call, "GET", "model-versions/search", **given)


async def _find_datasets(call: Call, given: Mapping[str, Any], _: _Selections) -> Any:
    return await ask_endpoint(call, "POST", "experiments/search-datasets", **given)


async def _list_artifacts(call: Call, given: Mapping[str, Any], _: _Selections) -> Any:
    run_id = given.get("run_id") or given.get("run_uuid")
    return await describe_run_folder(call, str(run_id or ""), str(given.get("path") or ""))


async def _echo(_: Call, given: Mapping[str, Any], __: _Selections) -> Any:
    return {"output": given.get("input_string")}


_QUERY, _BOTH, _MUTATION = ("query",), ("query", "mutation"), ("mutation",)
_ROOTS: Mapping[str, tuple[str, _Find, tuple[str, ...]]] = MappingProxyType(
    {
        "mlflowGetRun": ("MlflowGetRunResponse", _find_run, _QUERY),
        "mlflowGetExperiment": ("MlflowGetExperimentResponse", _find_experiment, _QUERY),
        "mlflowSearchRuns": ("MlflowSearchRunsResponse", _search_runs, _BOTH),
        "mlflowGetMetricHistoryBulkInterval": (
            "MlflowGetMetricHistoryBulkIntervalResponse",
            _find_histories,
            _QUERY,
        ),
        "mlflowListArtifacts": ("MlflowListArtifactsResponse", _list_artifacts, _QUERY),
        "mlflowSearchModelVersions": ("MlflowSearchModelVersionsResponse", _find_versions, _QUERY),
        "mlflowSearchDatasets": ("MlflowSearchDatasetsResponse", _find_datasets, _MUTATION),
        "test": ("Test", _echo, _QUERY),
        "testMutation": ("TestMutation", _echo, _MUTATION),
    }
)
"""Root to the type of its answer, how it is found, and the operations it belongs to."""


def shape(kind: str, value: Mapping[str, Any], asked: _Selections) -> dict[str, Any]:
    """What is asked of a message of the REST API, as an object of GraphQL. A field without a value has its default.

    >>> shape("MlflowModelOutput", {"model_id": "m-1"}, (Selection("modelId"), Selection("step", "at")))
    {'modelId': 'm-1', 'at': '0'}
    """
    found: dict[str, Any] = {}
    for each in asked:
        if each.name == "__typename":
            found[each.key] = kind
            continue
        below, part = _TYPES[kind][each.name], value.get(_write_name(each.name))
        if below.startswith("[") and below != _TEXTS:
            found[each.key] = [shape(below[1:], item, each.below) for item in part or ()]
        elif below == "ApiError":
            found[each.key] = None if part is None else shape(below, part, each.below)
        elif below in _TYPES:
            found[each.key] = shape(below, part or {}, each.below)
        else:
            found[each.key] = _write_value(below, part)
    return found


def _write_value(kind: str, value: Any) -> Any:
    if kind == _LONG:
        return str(value or 0)
    if kind == _FLOAT:
        return None if value == "NaN" or (isinstance(value, float) and math.isnan(value)) else value or 0.0
    if kind == _FLAG:
        return bool(value)
    if kind == _TEXTS:
        return value or []
    return "" if value is None else value


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
