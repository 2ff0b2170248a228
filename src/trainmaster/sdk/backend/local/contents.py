"""Snapshots, models and wheels in the workspace's folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from trainmaster.shared.folders import WorkspaceFolder

if TYPE_CHECKING:
    from trainmaster.snapshots import Snapshot


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
