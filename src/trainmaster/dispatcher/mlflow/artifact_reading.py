"""Files of runs and logged models, read piece by piece: for jobs, which may run on other machines."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

from trainmaster.dispatcher.mlflow.addresses import (
    RunPart,
    find_model_part,
    find_run_part,
    make_run_uri,
    read_uri,
    split_path,
)
from trainmaster.dispatcher.mlflow.errors import MlflowError
from trainmaster.dispatcher.store.run_addresses import RunAddresses
from trainmaster.job.errors import UserErrorException
from trainmaster.shared import beneath
from trainmaster.shared.folders import WorkspaceFolder

LARGEST_PIECE = 4 * 1024 * 1024


class ArtifactReading:
    """Lists and reads files by the path that follows `mlflow-artifacts:/` in their address."""

    def __init__(self, folder: WorkspaceFolder, addresses: RunAddresses) -> None:
        self._folder = folder
        self._addresses = addresses

    def list_folder(self, path: str) -> list[dict[str, Any]]:
        """What is in a folder; nothing if there is none."""
        try:
            top, name = self._find(path)
            return [{"name": each, "size": size} for each, size in beneath.list_folder(top, name)]
        except OSError:
            return []

    def read(self, path: str, offset: int, size: int) -> dict[str, Any]:
        """A piece of a file, and what tells whether the file has changed since."""
        try:
            top, name = self._find(path)
            with beneath.open_file(top, name) as file:
                file.seek(max(offset, 0))
                piece = file.read(min(max(size, 0), LARGEST_PIECE))
                facts = os.fstat(file.fileno())
        except OSError:
            raise UserErrorException(f"there is no artifact {path[:300]!r}") from None
        return {"data": base64.b64encode(piece).decode(), "stamp": [facts.st_size, facts.st_mtime_ns]}

    def _find(self, path: str) -> tuple[Path, str]:
        """The folder that nothing may lead out of, and the real path in it: a run's own files may be behind links."""
        top, target = self._locate(path)
        real_top, real = os.path.realpath(top), os.path.realpath(target)
        if real == real_top:
            return Path(real_top), ""
        if not real.startswith(real_top + os.sep):
            raise FileNotFoundError(path)
        return Path(real_top), os.path.relpath(real, real_top)

    def _locate(self, path: str) -> tuple[Path, Path]:
        try:
            parts = split_path(path)
        except MlflowError as error:
            raise UserErrorException(error.message) from None
        run = find_run_part(parts)
        if run is not None and self._has_files_at(run):
            folder = self._folder.run(run.run_id)
            return folder.path, folder.files.joinpath(*run.rest)
        model = find_model_part(parts)
        if model is None:
            raise UserErrorException(f"there are no files of a run or logged model at {path[:300]!r}")
        folder_of_model = self._folder.find_logged_model(model[0])
        return folder_of_model, folder_of_model.joinpath(*model[1])

    def _has_files_at(self, run: RunPart) -> bool:
        found = self._addresses.find(run.run_id)
        return found is not None and read_uri(make_run_uri(found.experiment_id, run.run_id, found.location)) == run.root
