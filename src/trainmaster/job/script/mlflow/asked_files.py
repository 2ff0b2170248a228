"""Artifacts of other runs and logged models of the workspace, which a job asks the dispatcher for.

MLflow finds this class by an entry point of the kit. What servers call `mlflow-artifacts:/0/RUN/artifacts` is
`trainmaster-files:/0/RUN/artifacts` in a job.
"""

import base64
import json
import posixpath

from mlflow.entities import FileInfo
from mlflow.exceptions import MlflowException
from mlflow.store.artifact.artifact_repo import ArtifactRepository

from trainmaster.job.errors import TrainmasterError
from trainmaster.job.script.asking import ask
from trainmaster.job.script.mlflow.releases import not_here

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_THERE, _HERE = "mlflow-artifacts:/", "trainmaster-files:/"
_FIELDS = ("artifact_uri", "artifact_location")
_PIECE = 2 * 1024 * 1024


def localize(body: str) -> str:
    """An answer of the workspace with addresses that this job can open.

    >>> localize('{"info": {"artifact_uri": "mlflow-artifacts:/0/abc/artifacts", "name": "mlflow-artifacts:/"}}')
    '{"info": {"artifact_uri": "trainmaster-files:/0/abc/artifacts", "name": "mlflow-artifacts:/"}}'
    """
    return json.dumps(_replace(json.loads(body))) if _THERE in body else body


def _replace(value: "Any") -> "Any":
    if isinstance(value, list):
        return [_replace(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {name: _replace(each) for name, each in value.items()}
    for name in _FIELDS:
        if isinstance(found.get(name), str) and found[name].startswith(_THERE):
            found[name] = _HERE + found[name][len(_THERE) :].lstrip("/")
    return found


class AskedFiles(ArtifactRepository):  # type: ignore[misc]
    """A folder of another run, for reading."""

    def list_artifacts(self, path: "str | None" = None) -> "Any":
        found = _ask("mlflow.list_files", path=self._whole(path))
        return [
            FileInfo(posixpath.join(path or "", each["name"]), each["size"] is None, each["size"]) for each in found
        ]

    def _download_file(self, remote_file_path: str, local_path: str) -> None:
        whole, offset, stamp = self._whole(remote_file_path), 0, None
        with open(local_path, "wb") as file:
            while stamp is None or offset < stamp[0]:
                found = _ask("mlflow.read_file", path=whole, offset=offset, size=_PIECE)
                if stamp not in (None, found["stamp"]):
                    raise MlflowException("{!r} was changed while it was read".format(remote_file_path))
                stamp = found["stamp"]
                offset += file.write(base64.b64decode(found["data"]))

    def _whole(self, path: "str | None") -> str:
        root = self.artifact_uri[len(_HERE) :].strip("/")
        return posixpath.join(root, path) if path else root

    def log_artifact(self, local_file: str, artifact_path: "str | None" = None) -> None:
        raise not_here("adding files to other runs")

    def log_artifacts(self, local_dir: str, artifact_path: "str | None" = None) -> None:
        raise not_here("adding files to other runs")


def _ask(op: str, **arguments: "Any") -> "Any":
    try:
        return ask(op, arguments, "files of MLflow's runs", "The files of this run are kept all the same.")
    except TrainmasterError as error:
        raise MlflowException(str(error)) from None
