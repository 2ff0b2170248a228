"""Reads the manifest of a snapshot, and checks that all its contents exist."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from trainmaster.job.errors import SnapshotException
from trainmaster.shared.serialization import PlainDataError, from_plain
from trainmaster.snapshots.blobs import blob_path
from trainmaster.snapshots.manifest import manifest_id, manifest_path


@dataclass(frozen=True)
class ManifestFile:
    """A file of a snapshot."""

    path: str
    digest: str
    size: int
    executable: bool


@dataclass(frozen=True)
class ManifestLink:
    """A symbolic link of a snapshot."""

    path: str
    target: str


@dataclass(frozen=True)
class Manifest:
    """The contents of a snapshot. Paths are relative and use `/`; bytes that are not UTF-8 are surrogates."""

    version: int
    files: tuple[ManifestFile, ...] = ()
    links: tuple[ManifestLink, ...] = ()
    folders: tuple[str, ...] = ()
    """Empty folders."""


def load_manifest(workspace: Path, snapshot_id: str) -> Manifest:
    """Read the manifest of a snapshot; raise a SnapshotException if it is missing or damaged."""
    path = Path(manifest_path(str(workspace), snapshot_id))
    try:
        text = path.read_bytes()
    except OSError as error:
        raise SnapshotException(
            f"Snapshot {snapshot_id} is not in this workspace",
            cause=f"{path}: {error.strerror}",
            hint="Is this the workspace the run was submitted to? If so, submit the run again.",
        ) from None
    damaged = SnapshotException(
        f"The manifest of snapshot {snapshot_id} is damaged",
        cause=f"{path} has been changed.",
        hint="Remove the file and submit the run again.",
    )
    if manifest_id(text) != snapshot_id:
        raise damaged
    try:
        return from_plain(Manifest, json.loads(text), "manifest")
    except (ValueError, PlainDataError):
        raise damaged from None


def verify_snapshot(workspace: Path, snapshot_id: str) -> None:
    """Check that the manifest and all blobs of a snapshot exist and have the right size."""
    blobs = str(Path(workspace) / "blobs")
    for file in load_manifest(Path(workspace), snapshot_id).files:
        path = blob_path(blobs, file.digest)
        try:
            size = os.stat(path).st_size
        except OSError as error:
            raise broken_blob(snapshot_id, file, f"{path}: {error.strerror}") from None
        if size != file.size:
            raise broken_blob(snapshot_id, file, f"{path} has {size} bytes instead of {file.size}.")


def broken_blob(snapshot_id: str, file: ManifestFile, cause: str) -> SnapshotException:
    """The error for a content that is missing or damaged."""
    return SnapshotException(
        f"Snapshot {snapshot_id} is damaged: the content of {file.path} is missing or wrong",
        cause=cause,
        hint="Remove the workspace's snapshots/.cache folder and submit the run again.",
    )
