"""MLflow's paths at the root of the server: `https://server` alone may be the tracking address.

The workspace is the one in the header that MLflow's clients send for `mlflow.set_workspace`, or the only one there is,
or the one called `default`.
"""

from __future__ import annotations

import re

from starlette.types import Scope

from trainmaster.dispatcher.mlflow.errors import ArtifactPathError, MlflowError, code_of, describe_error
from trainmaster.job.errors import TrainmasterError
from trainmaster.server.errors import refuse
from trainmaster.server.workspaces import Workspaces

_HEADER = b"x-mlflow-workspace"
_USUAL = "default"
"""What MLflow calls the workspace of clients that choose none."""
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
_SLASHES = re.compile(rb"(/mlflow/[^/]+)?//+")


def is_mlflow(path: bytes) -> bool:
    """Whether a path is one of MLflow's, in whatever workspace."""
    return _merge_slashes(path).startswith((_BELOW, b"/version", *_BEGINNINGS))


def find_path(scope: Scope, workspaces: Workspaces) -> bytes:
    """The path of a request, with the workspace in it if it is one of MLflow's."""
    path = _merge_slashes(scope["raw_path"])
    if not path.startswith(_BEGINNINGS) or _OF_SERVER.fullmatch(path):
        return path
    given = next((value for name, value in scope["headers"] if name == _HEADER), b"")
    return _BELOW + (given or _find_only_workspace(workspaces).encode()) + path


def _merge_slashes(path: bytes) -> bytes:
    """One slash where a path begins: a tracking address may end with a slash, and programs add a path to it.

    >>> _merge_slashes(b"//get-artifact"), _merge_slashes(b"/mlflow/team//graphql"), _merge_slashes(b"/api/a//b")
    (b'/get-artifact', b'/mlflow/team/graphql', b'/api/a//b')
    """
    found = _SLASHES.match(path)
    return (found[1] or b"") + b"/" + path[found.end() :] if found else path


def _find_only_workspace(workspaces: Workspaces) -> str:
    found = [each.name for each in workspaces.list()]
    if len(found) == 1:
        return found[0]
    if _USUAL in found:
        return _USUAL
    raise refuse(
        400,
        "this server has several workspaces" if found else "this server has no workspace yet",
        hint="Set MLFLOW_TRACKING_URI to the address of the server followed by /mlflow/WORKSPACE.",
    )


def describe_for_mlflow(error: TrainmasterError, status: int) -> dict[str, str]:
    """An error of the server as MLflow's clients understand it."""
    if isinstance(error, MlflowError):
        more = {"detail": error.message} if isinstance(error, ArtifactPathError) else {}
        return {**describe_error(error.code, error.message, error.error_class), **more}
    parts = (error.headline, error.cause, error.hint)
    return describe_error(code_of(status), ". ".join(part.rstrip(".") for part in parts if part))
