"""Keeps MLflow's artifacts as files of the run. MLflow finds this class by an entry point of the kit."""

import os
from urllib.parse import urlparse
from urllib.request import pathname2url, url2pathname

from mlflow.store.artifact.local_artifact_repo import LocalArtifactRepository

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def address_of(folder: str) -> str:
    """The address by which MLflow finds this class."""
    return "trainmaster://" + pathname2url(folder)


def folder_of(address: str) -> str:
    """The folder behind such an address, or behind one of a file.

    >>> folder_of("trainmaster:///a/b%20c"), folder_of("file:///a/b"), folder_of("/a/b")
    ('/a/b c', '/a/b', '/a/b')
    """
    return url2pathname(urlparse(address).path)


# MLflow 3 lists the files of a model that a run logged twice: as the run's, and by the model of that name.
_models: "set[str]" = set()


def note_model(place: str) -> None:
    """Remembers a folder that is a model of MLflow 3, and has its name."""
    _models.add(os.path.realpath(place))


class JobFiles(LocalArtifactRepository):  # type: ignore[misc]
    """A folder of a run's files. While the run goes, `outputs` and `logs` are links, which MLflow does not follow."""

    def __init__(self, artifact_uri: str, *args: "Any", **kwargs: "Any") -> None:
        super(JobFiles, self).__init__("file://" + pathname2url(folder_of(artifact_uri)), *args, **kwargs)

    def list_artifacts(self, path: "str | None" = None) -> "Any":
        first = os.path.normpath(path).split(os.sep)[0] if path else ""
        if first and os.path.realpath(os.path.join(self.artifact_dir, first)) in _models:
            return []
        return super(JobFiles, self).list_artifacts(path)

    def log_artifact(self, local_file: str, artifact_path: "str | None" = None) -> None:
        behind, rest = self._follow_link(artifact_path)
        if behind is None:
            super(JobFiles, self).log_artifact(local_file, artifact_path)
        else:
            behind.log_artifact(local_file, rest)

    def log_artifacts(self, local_dir: str, artifact_path: "str | None" = None) -> None:
        behind, rest = self._follow_link(artifact_path)
        if behind is None:
            super(JobFiles, self).log_artifacts(local_dir, artifact_path)
        else:
            behind.log_artifacts(local_dir, rest)

    def _follow_link(self, artifact_path: "str | None") -> "tuple[Any, str | None]":
        """The folder that the first part of the path leads to, if it is a link, and the rest of the path."""
        first, _, rest = (artifact_path or "").partition("/")
        folder = os.path.join(self.artifact_dir, first)
        if not first or not os.path.islink(folder):
            return None, artifact_path
        return LocalArtifactRepository("file://" + pathname2url(os.path.realpath(folder))), rest or None
