"""What MLflow's clients ask about the server itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from starlette.responses import PlainTextResponse

from trainmaster.dispatcher.mlflow.errors import ABSENT, NOT_IMPLEMENTED, MlflowError
from trainmaster.server.api.table import MLFLOW, Handler, Route
from trainmaster.server.call import Call
from trainmaster.server.permissions import Permission

RELEASE = "3.17.2"
"""The release of MLflow whose server this one answers like."""


async def get_health(call: Call) -> PlainTextResponse:
    """Whether the server answers."""
    return PlainTextResponse("OK")


async def get_version(call: Call) -> PlainTextResponse:
    """The release of MLflow whose API this is."""
    return PlainTextResponse(RELEASE)


async def get_server_info(call: Call) -> dict[str, Any]:
    """What the server can do; clients ask it before they upload or download."""
    return {
        "store_type": "SqlStore",
        "workspaces_enabled": _names_workspace_by_header(call),
        "trace_archival_enabled": False,
        "multipart_uploads_enabled": False,
        "multipart_downloads_enabled": False,
        "presigned_upload_run_id_supported": False,
        "presigned_upload_model_id_supported": False,
        "features_enabled": {"gateway": False},
    }


def _names_workspace_by_header(call: Call) -> bool:
    """Whether the address is that of the server, so that `mlflow.set_workspace` chooses the workspace."""
    return not call.request.scope["raw_path"].startswith(b"/mlflow/") or "x-mlflow-workspace" in call.request.headers


async def list_workspaces(call: Call) -> dict[str, Any]:
    """The workspaces that the caller may read."""
    names = [each.name for each in call.parts.workspaces.list() if call.caller.may(Permission.READ, each.name)]
    return {"workspaces": [{"name": name} for name in names]}


async def get_workspace(call: Call, name: str) -> dict[str, Any]:
    """One of these workspaces."""
    known = (await list_workspaces(call))["workspaces"]
    if {"name": name} not in known:
        raise MlflowError(ABSENT, f"Workspace '{name[:100]}' not found")
    return {"workspace": {"name": name}}


async def refuse_workspaces(call: Call) -> None:
    """Creating workspaces, which is done by other routes."""
    raise _refuse_change()


async def refuse_workspace(call: Call, name: str) -> None:
    """Changing workspaces, which is done by other routes."""
    raise _refuse_change()


def _refuse_change() -> MlflowError:
    return MlflowError(
        NOT_IMPLEMENTED,
        "Workspaces cannot be changed by MLflow's API. Use the studio, or 'trainmaster workspace create'.",
    )


async def get_page_settings(call: Call) -> dict[str, Any]:
    """What MLflow's pages ask before they send telemetry: they send none."""
    return {"disable_ui_telemetry": True, "disable_ui_events": [], "ui_rollout_percentage": 0}


async def drop_telemetry(call: Call) -> dict[str, Any]:
    """Telemetry of MLflow's pages, which is not kept."""
    return {"status": "disabled"}


def fact_rows() -> Iterator[Route]:
    """The rows of this module: below the address of a workspace, and at the root of the server."""
    for top, permission in ((MLFLOW, Permission.READ), ("", Permission.SIGNED_IN)):
        yield _make_row(f"{top}/version", get_version, permission)
        for prefix in ("api", "ajax-api"):
            yield _make_row(f"{top}/{prefix}/3.0/mlflow/server-info", get_server_info, permission)
            yield _make_row(f"{top}/{prefix}/3.0/mlflow/workspaces", list_workspaces, permission)
            yield _make_row(f"{top}/{prefix}/3.0/mlflow/workspaces/{{name}}", get_workspace, permission)
            yield _make_row(f"{top}/{prefix}/3.0/mlflow/workspaces", refuse_workspaces, permission, "POST")
            for method in ("PATCH", "DELETE"):
                path = f"{top}/{prefix}/3.0/mlflow/workspaces/{{name}}"
                yield _make_row(path, refuse_workspace, permission, method)
    yield _make_row(f"{MLFLOW}/health", get_health, Permission.READ)
    telemetry = f"{MLFLOW}/ajax-api/3.0/mlflow/ui-telemetry"
    yield _make_row(telemetry, get_page_settings, Permission.READ)
    yield _make_row(telemetry, drop_telemetry, Permission.READ, "POST")


def _make_row(path: str, handler: Handler, permission: Permission, method: str = "GET") -> Route:
    return Route(
        method,
        path,
        handler,
        permission,
        f"MLflow: {handler.__doc__}",
        "mlflow",
        streams_body=method != "GET",
        ignores_query=True,
        is_mlflow=True,
        is_change=False,
    )
