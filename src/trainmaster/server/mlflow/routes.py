"""The rows for MLflow's paths. What they do is in `dispatcher/mlflow/`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from starlette.datastructures import QueryParams
from starlette.responses import Response

from trainmaster.dispatcher.api.mlflow import list_endpoints
from trainmaster.dispatcher.mlflow.endpoints import Endpoint
from trainmaster.job.errors import from_wire
from trainmaster.server.answers import cut_result
from trainmaster.server.api.table import MEGABYTE, MLFLOW, Handler, Route
from trainmaster.server.call import Call
from trainmaster.server.dispatchers import decode
from trainmaster.server.mlflow.asking import check_content_type, read_body_and_text
from trainmaster.server.permissions import Permission
from trainmaster.shared import json_text

_API, _PAGES = "api", "ajax-api"
_LARGEST = 32 * MEGABYTE
_LONGEST_RUN_ID = 255
_ARGUMENTS = "trainmaster.mlflow_arguments"


async def answer_request(call: Call) -> Response:
    """What MLflow's server would answer."""
    return await _answer(call)


async def answer_for_model(call: Call, model_id: str) -> Response:
    """The same for a path with a logged model."""
    return await _answer(call)


async def answer_for_model_tag(call: Call, model_id: str, tag_key: str) -> Response:
    """The same for a path with a tag of a logged model."""
    return await _answer(call)


_HANDLERS: Mapping[tuple[str, ...], Handler] = {
    ("workspace",): answer_request,
    ("workspace", "model_id"): answer_for_model,
    ("workspace", "model_id", "tag_key"): answer_for_model_tag,
}


async def _answer(call: Call) -> Response:
    path = call.route.path.partition(f"{MLFLOW}/")[2].partition("/")[2]
    for name, value in call.names.items():
        path = path.replace(f"{{{name}}}", value)
    _, text = await _read_arguments(call)
    names = {"method": call.route.method, "path": path}
    names |= {"user": call.caller.name, "workspace": call.names["workspace"]}
    line = await call.parts.dispatchers.answer(call.workspace.folder, "mlflow.answer", names, arguments=text)
    result = cut_result(line)
    if result is None:
        raise from_wire(decode(line)["error"])
    # [200, {...}]
    return Response(result[6:-1], int(result[1:4]), media_type="application/json")


async def name_run(call: Call) -> str:
    """What the audit log says of a call that training makes again and again: its path, and the run."""
    run_id = (await _read_arguments(call))[0].get("run_id")
    return f"{call.request.scope['raw_path'].decode('ascii', 'replace')} {str(run_id)[:_LONGEST_RUN_ID]}"


async def _read_arguments(call: Call) -> tuple[dict[str, Any], bytes]:
    """The arguments in the query and in the body, read once, and the same as JSON in one line."""
    scope = call.request.scope
    if _ARGUMENTS not in scope:
        check_content_type(call)
        query = read_query(call.request.query_params) if scope["query_string"] else {}
        body, text = await read_body_and_text(call)
        values = {**query, **body}
        scope[_ARGUMENTS] = values, text if text is not None and not query else json_text.write(values)
    found: tuple[dict[str, Any], bytes] = scope[_ARGUMENTS]
    return found


def read_query(query: QueryParams) -> dict[str, Any]:
    """The arguments of a query; one that is there several times is a list."""
    found: dict[str, Any] = {}
    for name in query:
        values = query.getlist(name)
        found[name] = values[0] if len(values) == 1 else values
    return found


def mlflow_rows() -> Iterator[Route]:
    """Every endpoint below `/api/`, and again below `/ajax-api/`, as MLflow's pages call it."""
    for each in list_endpoints():
        for prefix in (_PAGES,) if each.only_for_pages else (_API, _PAGES):
            yield _make_row(each, prefix)


def _make_row(each: Endpoint, prefix: str) -> Route:
    path = f"{MLFLOW}/{prefix}/{each.path}"
    permission = Permission.CONTRIBUTE if each.changes else Permission.READ
    names = tuple(part[1:-1] for part in path.split("/") if part.startswith("{"))
    return Route(
        each.method,
        path,
        _HANDLERS[names],
        permission,
        f"MLflow: {each.path}",
        "mlflow",
        largest_body=_LARGEST,
        streams_body=True,
        is_change=each.changes,
        is_counted=each.changes and each.is_frequent,
        name_target=name_run,
        ignores_query=True,
        is_mlflow=True,
    )
