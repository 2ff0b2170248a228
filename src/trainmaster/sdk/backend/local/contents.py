"""Snapshots, models and wheels in the workspace's folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from trainmaster.shared.folders import WorkspaceFolder

if TYPE_CHECKING:
    from trainmaster.snapshots import Snapshot
    from trainmaster.snapshots.model_contents import Contents, Kept, Manifest


class LocalContents:
    """The contents in the folder of a workspace."""

    def __init__(self, folder: WorkspaceFolder) -> None:
        self._folder = folder

    def take_snapshot(self, source: Path) -> Snapshot:
        """Takes a snapshot of a folder."""
        from trainmaster.snapshots import take_snapshot

        return take_snapshot(source, self._folder.path)

    def write_archive(self, snapshot_id: str, destination: Path) -> Path:
        """Writes a snapshot as a zip and returns the zip's path."""
        from trainmaster.snapshots import write_archive

        return write_archive(self._folder.path, snapshot_id, destination)

    def keep_wheel(self, wheel: Path, exist_ok: bool) -> str:
        """Keeps a wheel and returns its address."""
        from trainmaster.environments.private_wheel import keep_wheel

        return keep_wheel(self._folder.path / "wheels", wheel, exist_ok)

    def keep_model(self, entry: str, files: Mapping[str, Path]) -> Kept:
        """Keeps files as one model."""
        return self._models.keep(entry, files)

    def read_model_list(self, digest: str) -> Manifest:
        """The list of a model's files."""
        return self._models.manifest(digest)

    def model_list_path(self, digest: str) -> Path:
        """The path of that list in the workspace."""
        return self._models.list_path(digest)

    def copy_model(self, digest: str, target: Path) -> None:
        """Copies all files of a model into the folder `target`."""
        from trainmaster.snapshots.model_contents import copy_file

        self._models.copy_to(target, self._models.manifest(digest), copy_file)

    def materialise_model(self, name: str, version: int, digest: str) -> Path:
        """A folder in the workspace with nothing but the entry of a model."""
        return self._models.materialise(name, version, digest)

    def check_model(self, name: str, version: int, digest: str) -> None:
        """Reads all files of a model."""
        self._models.check(name, version, digest)

    @property
    def _models(self) -> Contents:
        from trainmaster.snapshots.model_contents import Contents

        return Contents(self._folder.models)
