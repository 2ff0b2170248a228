"""MLflow's stores over the socket of a workspace."""

from __future__ import annotations

import json
import os
from typing import Any

from mlflow.exceptions import MlflowException

from trainmaster.job.errors import TrainmasterError
from trainmaster.job.script.identity import user_name
from trainmaster.job.script.mlflow.rest import AskingRegistry, AskingStore
from trainmaster.sdk.backend.opening import open_backend
from trainmaster.sdk.mlflow.addresses import globalize, localize, workspace_of
from trainmaster.shared.folders import WorkspaceFolder


class _Sender:
    """Sends what MLflow's client would send over HTTP."""

    def __init__(self, address: str) -> None:
        self._workspace = workspace_of(address)
        self._connection = open_backend(WorkspaceFolder(self._workspace)).connection

    def send(self, method: str, path: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The status and the body of the answer, with addresses of this machine."""
        try:
            found: dict[str, Any] = self._connection.call(
                "mlflow.call",
                method=method,
                path=path,
                arguments=globalize(arguments, self._workspace),
                user=user_name(),
            )
        except TrainmasterError as error:
            raise MlflowException(str(error)) from None
        if found["status"] != 200:
            return found
        return {**found, "body": json.dumps(localize(json.loads(found["body"]), self._workspace))}


def _open_sender(address: str) -> _Sender:
    try:
        return _Sender(address)
    except TrainmasterError as error:
        raise MlflowException(str(error)) from None


class WorkspaceStore(AskingStore):
    """Experiments, runs and logged models of a workspace on this machine."""

    def __init__(self, store_uri: str, artifact_uri: str | None = None) -> None:
        super().__init__(store_uri, _open_sender(store_uri).send)
        # MLflow would print an address of its own pages on a server.
        os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")


class WorkspaceRegistry(AskingRegistry):
    """Registered models of a workspace on this machine."""

    def __init__(self, store_uri: str, tracking_uri: str | None = None) -> None:
        super().__init__(store_uri, _open_sender(store_uri).send)
