"""MLflow's paths at the root of the server: `https://server` alone may be the tracking address.

The workspace is the one in the header that MLflow's clients send for `mlflow.set_workspace`, or the only one there is.
"""

from __future__ import annotations

import re

from starlette.types import Scope

from trainmaster.dispatcher.mlflow.errors import MlflowError, code_of, describe_error
from trainmaster.job.errors import TrainmasterError
from trainmaster.server.errors import refuse
from trainmaster.server.workspaces import Workspaces

_HEADER = b"x-mlflow-workspace"
_BEGINNINGS = (
    b"/api/2.0/mlflow",
    b"/api/3.0/mlflow",
    b"/api/3.0/jobs",
    b"/ajax-api/",
    b"/v1/traces",
    b"/gateway/",
    b"/get-artifact",
    b"/model-versions/get-artifact",
    b"/graphql",
)
_OF_SERVER = re.compile(rb"/version|/(ajax-)?api/3\.0/mlflow/(server-info|workspaces)(/.*)?")
"""The same in every workspace, and asked before one is chosen."""
_BELOW = b"/mlflow/"


def is_mlflow(path: bytes) -> bool:
    """Whether a path is one of MLflow's, in whatever workspace."""
    return path.startswith((_BELOW, b"/version", *_BEGINNINGS))


def find_path(scope: Scope, workspaces: Workspaces) -> bytes:
    """The path of a request, with the workspace in it if it is one of MLflow's."""
    path: bytes = scope["raw_path"]
    if not path.startswith(_BEGINNINGS) or _OF_SERVER.fullmatch(path):
        return path
    given = next((value for name, value in scope["headers"] if name == _HEADER), b"")
    return _BELOW + (given or _find_only_workspace(workspaces).encode()) + path


def _find_only_workspace(workspaces: Workspaces) -> str:
    found = [each.name for each in workspaces.list()]
    if len(found) == 1:
        return found[0]
    raise refuse(
        400,
        "this server has several workspaces" if found else "this server has no workspace yet",
        hint="Set MLFLOW_TRACKING_URI to the address of the server followed by /mlflow/WORKSPACE.",
    )


def describe_for_mlflow(error: TrainmasterError, status: int) -> dict[str, str]:
    """An error of the server as MLflow's clients understand it."""
    if isinstance(error, MlflowError):
        return describe_error(error.code, error.message)
    parts = (error.headline, error.cause, error.hint)
    return describe_error(code_of(status), ". ".join(part.rstrip(".") for part in parts if part))
