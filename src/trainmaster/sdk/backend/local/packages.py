"""The files of packages in the workspace's folder."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from trainmaster.job.script.storage import StoredFile
from trainmaster.job.script.store_folder import FolderStorage


class LocalPackage:
    """The files in the folder of a package."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def list_all(self) -> list[tuple[StoredFile, bool]]:
        """All files, and whether each is executable."""
        found = FolderStorage(self._folder).list("")
        return [(file, os.access(self._folder / file.path, os.X_OK)) for file in found]

    def get(self, path: str, local: str | os.PathLike[str]) -> None:
        """Copies the file at `path` to `local`."""
        shutil.copyfile(self._folder / path, local)

    def local_path(self) -> str | None:
        """The folder itself."""
        return str(self._folder)
