"""What MLflow finds by entry points, for addresses that begin with `trainmaster:`.

`trainmaster:run` is the run of a job; it works here as well as with the kit's own entry points.
"""

from __future__ import annotations

from typing import Any

from trainmaster.sdk.mlflow.addresses import is_of_workspace

_JOB = "trainmaster:run"


def open_store(store_uri: str, artifact_uri: str | None = None) -> Any:
    """The tracking store at an address."""
    if store_uri == _JOB:
        from trainmaster.job.script.mlflow.store import JobStore

        return JobStore(store_uri, artifact_uri)
    from trainmaster.sdk.mlflow.stores import WorkspaceStore

    return WorkspaceStore(store_uri, artifact_uri)


def open_registry(store_uri: str, tracking_uri: str | None = None) -> Any:
    """The registry of models at an address."""
    if store_uri == _JOB:
        from trainmaster.job.script.mlflow.registry import JobRegistry

        return JobRegistry(store_uri, tracking_uri)
    from trainmaster.sdk.mlflow.stores import WorkspaceRegistry

    return WorkspaceRegistry(store_uri, tracking_uri)


def open_files(artifact_uri: str, *args: Any, **kwargs: Any) -> Any:
    """The files at an address."""
    if is_of_workspace(artifact_uri):
        from trainmaster.sdk.mlflow.files import WorkspaceFiles

        return WorkspaceFiles(artifact_uri, *args, **kwargs)
    from trainmaster.job.script.mlflow.files import JobFiles

    return JobFiles(artifact_uri, *args, **kwargs)
