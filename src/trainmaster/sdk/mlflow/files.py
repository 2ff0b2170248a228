"""Files of runs and models in a workspace on this machine, as MLflow's clients read and write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mlflow.exceptions import MlflowException
from mlflow.store.artifact.local_artifact_repo import LocalArtifactRepository

from trainmaster.job.errors import TrainmasterError
from trainmaster.sdk.backend.opening import open_backend
from trainmaster.sdk.mlflow.addresses import split_files
from trainmaster.shared.folders import WorkspaceFolder

_FILES, _MODELS = "artifacts", "models"


class WorkspaceFiles(LocalArtifactRepository):  # type: ignore[misc]
    """A folder with the files of a run or of a logged model."""

    def __init__(self, artifact_uri: str, *args: Any, **kwargs: Any) -> None:
        try:
            folder = find_folder(artifact_uri)
        except TrainmasterError as error:
            raise MlflowException(str(error)) from None
        super().__init__(folder.as_uri(), *args, **kwargs)


def find_folder(address: str) -> Path:
    """The folder behind `trainmaster:///WORKSPACE/mlflow-artifacts/...`.

    What follows is EXPERIMENT/RUN/artifacts, EXPERIMENT/models/MODEL/artifacts for a logged model, or
    models/NAME/VERSION for a registered one.
    """
    workspace, parts = split_files(address)
    folder = WorkspaceFolder(workspace)
    found: Path | None = None
    if ".." in parts or len(parts) < 3:
        pass
    elif parts[0] == _MODELS and parts[2].isdecimal():
        connection = open_backend(folder).connection
        place = connection.call("mlflow.find_version", name=parts[1], version=int(parts[2]))
        found = Path(place, *parts[3:]) if place else None
    elif parts[1] == _MODELS and parts[3:4] == (_FILES,):
        found = folder.find_logged_model(parts[2]).joinpath(*parts[4:])
    elif parts[2] == _FILES:
        found = folder.run(parts[1]).files.joinpath(*parts[3:])
    if found is None:
        raise MlflowException(f"There are no files at {address}")
    return found
