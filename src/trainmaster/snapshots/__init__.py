"""Snapshots: content-addressed copies of source folders, and where the source comes from.

snapshot = take_snapshot(Path("my-project"), workspace)
write_archive(workspace, snapshot.id, Path("."))
"""

from __future__ import annotations

from pathlib import Path

from trainmaster.snapshots.cache import drop_caches
from trainmaster.snapshots.git import GitProperties, git_properties, start_git_properties
from trainmaster.snapshots.take import Snapshot, take_snapshot

__all__ = [
    "GitProperties",
    "Snapshot",
    "drop_caches",
    "git_properties",
    "start_git_properties",
    "take_snapshot",
    "verify_snapshot",
    "write_archive",
]


def write_archive(workspace: Path, snapshot_id: str, destination: Path) -> Path:
    """Write the snapshot to `destination` if that ends with .zip, otherwise to `<destination>/<snapshot id>.zip`.

    Links and executable bits are kept. Returns the path of the archive.
    """
    # Rarely used, and importing it takes longer than taking a snapshot. The same applies to verify below.
    from trainmaster.snapshots.archive import write_archive as write

    return write(workspace, snapshot_id, destination)


def verify_snapshot(workspace: Path, snapshot_id: str) -> None:
    """Check that the manifest and all contents of a snapshot exist; raise a SnapshotException for what is missing."""
    from trainmaster.snapshots.verify import verify_snapshot as verify

    verify(workspace, snapshot_id)
