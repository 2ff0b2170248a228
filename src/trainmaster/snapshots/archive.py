"""Writes a snapshot as a zip file."""

from __future__ import annotations

import contextlib
import os
import stat
import zipfile
from pathlib import Path
from typing import IO

from blake3 import blake3

from trainmaster.job.errors import SnapshotException
from trainmaster.snapshots.blobs import blob_path
from trainmaster.snapshots.verify import ManifestFile, broken_blob, load_manifest

_PIECE = 1 << 20


def write_archive(workspace: Path, snapshot_id: str, destination: Path) -> Path:
    """Write the snapshot to `destination` if that ends with .zip, otherwise to `<destination>/<snapshot id>.zip`."""
    workspace, destination = Path(workspace), Path(destination)
    load_manifest(workspace, snapshot_id)
    target = destination if destination.suffix == ".zip" else destination / f"{snapshot_id}.zip"
    temporary = target.with_name(f".{target.name}.partial-{os.getpid()}-{os.urandom(4).hex()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(temporary, "x", zipfile.ZIP_DEFLATED) as archive:
            _fill(archive, workspace, snapshot_id)
        temporary.replace(target)
    except OSError as error:
        raise SnapshotException(f"Cannot write {target}", cause=str(error), hint="Choose a writable folder.") from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
    return target


def write_archive_to(file: IO[bytes], workspace: Path, snapshot_id: str) -> None:
    """Write the snapshot to an open file, which is at its end then."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        _fill(archive, workspace, snapshot_id)
    file.seek(0, os.SEEK_END)


def _fill(archive: zipfile.ZipFile, workspace: Path, snapshot_id: str) -> None:
    manifest = load_manifest(workspace, snapshot_id)
    for file in manifest.files:
        mode = stat.S_IFREG | (0o755 if file.executable else 0o644)
        entry = _entry(file.path, mode)
        entry.file_size = file.size
        _copy(archive, entry, str(workspace / "blobs"), snapshot_id, file)
    for link in manifest.links:
        archive.writestr(_entry(link.path, stat.S_IFLNK | 0o777), os.fsencode(link.target))
    for folder in manifest.folders:
        archive.writestr(_entry(folder + "/", stat.S_IFDIR | 0o755), b"")


def _entry(path: str, mode: int) -> zipfile.ZipInfo:
    # Zip names are UTF-8; other bytes are written as \xff.
    entry = zipfile.ZipInfo(os.fsencode(path).decode("utf-8", "backslashreplace"))
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.create_system = 3  # Unix, or the mode would be ignored
    entry.external_attr = mode << 16
    return entry


def _copy(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, blobs: str, snapshot_id: str, file: ManifestFile) -> None:
    hasher = blake3()
    with contextlib.ExitStack() as stack:
        try:
            blob = stack.enter_context(open(blob_path(blobs, file.digest), "rb"))
        except OSError as error:
            raise broken_blob(snapshot_id, file, str(error)) from None
        packed = stack.enter_context(archive.open(entry, "w"))
        while piece := blob.read(_PIECE):
            hasher.update(piece)
            packed.write(piece)
    if hasher.hexdigest() != file.digest:
        raise broken_blob(snapshot_id, file, "The content does not have the digest it is kept under.")
