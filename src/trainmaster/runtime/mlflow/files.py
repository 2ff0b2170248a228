"""What a script keeps with MLflow, as files of its run. MLflow finds this by an entry point of the kit."""

import os
from urllib.parse import urlparse
from urllib.request import pathname2url, url2pathname

from mlflow.store.artifact.local_artifact_repo import LocalArtifactRepository


def address_of(folder):
    """The address by which MLflow comes here."""
    return "trainmaster://" + pathname2url(folder)


class JobFiles(LocalArtifactRepository):  # type: ignore[misc]
    """A folder of a run's files. `outputs` and `logs` are links while the run goes, which MLflow would not follow."""

    def __init__(self, artifact_uri, *args, **kwargs):
        folder = url2pathname(urlparse(artifact_uri).path)
        super(JobFiles, self).__init__("file://" + pathname2url(folder), *args, **kwargs)

    def log_artifact(self, local_file, artifact_path=None):
        behind, rest = self._behind_link(artifact_path)
        if behind is None:
            super(JobFiles, self).log_artifact(local_file, artifact_path)
        else:
            behind.log_artifact(local_file, rest)

    def log_artifacts(self, local_dir, artifact_path=None):
        behind, rest = self._behind_link(artifact_path)
        if behind is None:
            super(JobFiles, self).log_artifacts(local_dir, artifact_path)
        else:
            behind.log_artifacts(local_dir, rest)

    def _behind_link(self, artifact_path):
        """The folder that the first part of the path leads to, if it is a link, and the rest of the path."""
        first, _, rest = (artifact_path or "").partition("/")
        folder = os.path.join(self.artifact_dir, first)
        if not first or not os.path.islink(folder):
            return None, artifact_path
        return LocalArtifactRepository("file://" + pathname2url(os.path.realpath(folder))), rest or None
