"""Takes a snapshot: finds changes, checks the limits, copies new contents, and finally writes the manifest."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from trainmaster.job.agent import durable
from trainmaster.job.errors import SnapshotException
from trainmaster.snapshots.blobs import (
    SourceChangedError,
    blob_path,
    has_blob,
    store_file,
    sweep_forgotten,
    write_atomically,
)
from trainmaster.snapshots.cache import Cached, boot_id, cache_path, read_cache, write_cache
from trainmaster.snapshots.collect import taking
from trainmaster.snapshots.limits import Amount, Limits, effective_limits, is_within, measure, size_warnings, too_large
from trainmaster.snapshots.manifest import dump_manifest, manifest_id, manifest_path
from trainmaster.snapshots.parallel import find_unchanged
from trainmaster.snapshots.recheck import Record
from trainmaster.snapshots.tree import FILE, LINK, PROGRAM, Folder, Walk, to_record

_ATTEMPTS = 3


@dataclass(frozen=True)
class Snapshot:
    """A content-addressed copy of a source folder."""

    id: str
    file_count: int
    byte_count: int
    warnings: tuple[str, ...]


def take_snapshot(
    source: Path, workspace: Path, *, max_bytes: int = 300 * 1024 * 1024, max_files: int = 100_000
) -> Snapshot:
    """Copy the source folder into the workspace, except for contents that are already there.

    Files listed in `.amlignore` (or, without it, in `.gitignore`) are ignored. If the folder exceeds the limits,
    nothing is copied and a SnapshotException lists the largest paths. The environment variables
    `TRAINMASTER_SNAPSHOT_MAX_MB` and `TRAINMASTER_SNAPSHOT_MAX_FILES` raise the limits.
    """
    limits = effective_limits(max_bytes, max_files, os.environ)
    place = _place(source, workspace)
    with taking(place.workspace):
        for _ in range(_ATTEMPTS):
            with contextlib.suppress(SourceChangedError):
                return _take(place, limits)
    raise SnapshotException(
        f"The source folder {source} keeps changing while it is copied",
        cause="Files disappeared between being listed and being read.",
        hint="Submit again when no program writes there, or add the changing files to .amlignore.",
    )


class _Place(NamedTuple):
    source: bytes
    workspace: str
    excluded: bytes | None

    @property
    def cache(self) -> str:
        return cache_path(self.workspace, self.source)

    @property
    def blobs(self) -> str:
        return f"{self.workspace}/blobs"


def _place(source: Path, workspace: Path) -> _Place:
    if not os.path.isdir(source):
        what = "is not a folder" if os.path.exists(source) else "does not exist"
        raise SnapshotException(
            f"The source folder {source} {what}", hint="source_directory must be the folder that contains the script."
        )
    real_source, real_workspace = os.path.realpath(source), os.path.realpath(workspace)
    if real_source == real_workspace:
        raise SnapshotException(
            f"The source folder {source} is the workspace itself",
            cause="The snapshot would contain all runs, environments and logs.",
            hint="Put the script into its own folder and pass that as source_directory.",
        )
    inside = real_workspace.startswith(real_source.rstrip("/") + "/")
    excluded = os.fsencode(os.path.relpath(real_workspace, real_source)) if inside else None
    return _Place(os.fsencode(real_source), real_workspace, excluded)


def _take(place: _Place, limits: Limits) -> Snapshot:
    scan_start_ns = time.time_ns()
    cached = read_cache(place.cache, place.source)
    unchanged = find_unchanged(place.source, cached.folders) if cached else frozenset()
    if cached and len(unchanged) == len(cached.folders) and _blobs_are_sure(place, cached):
        amount = Amount(cached.file_count, cached.byte_count)
        if is_within(amount, limits):
            return Snapshot(cached.snapshot_id, amount.files, amount.bytes, cached.warnings)
    known: dict[bytes, Record] = {record[0]: record for record in cached.folders} if cached else {}
    folders = Walk(place.source, place.excluded, known, unchanged).folders()
    amount = measure(folders)
    if not is_within(amount, limits):
        raise too_large(os.fsdecode(place.source), folders, amount, limits)
    if cached and not _blobs_are_sure(place, cached):
        _forget_missing(place.blobs, folders)
    stored = _store_new(place, folders)
    return _finish(place, folders, stored, scan_start_ns)


def _blobs_are_sure(place: _Place, cached: Cached) -> bool:
    return cached.boot_id == boot_id() and _touch(manifest_path(place.workspace, cached.snapshot_id))


def _touch(manifest: str) -> bool:
    """Make the manifest young, so that it stays until a run refers to it; return whether it exists."""
    try:
        os.utime(manifest)
    except FileNotFoundError:
        return False
    except OSError:
        # It belongs to another user of a shared workspace.
        return os.path.exists(manifest)
    return True


def _forget_missing(blobs: str, folders: list[Folder]) -> None:
    for folder in folders:
        for position, content in enumerate(folder.contents):
            is_file = content and not content.startswith(LINK)
            if is_file and not has_blob(blobs, content[1:].decode(), folder.signatures[position][3]):
                folder.contents[position] = b""
                folder.record = None


def _store_new(place: _Place, folders: list[Folder]) -> set[str]:
    """Copy files not known from the last snapshot; return the paths of their blobs, including existing ones."""
    paths: set[str] = set()
    for folder in folders:
        for position, content in enumerate(folder.contents):
            if content:
                continue
            if not paths:
                sweep_forgotten(place.blobs)
            stored = store_file(place.blobs, place.source + b"/" + folder.path_of(folder.names[position]))
            folder.contents[position] = (PROGRAM if stored.executable else FILE) + stored.digest.encode()
            folder.signatures[position] = stored.signature
            paths.add(blob_path(place.blobs, stored.digest))
    return paths


def _finish(place: _Place, folders: list[Folder], stored: set[str], scan_start_ns: int) -> Snapshot:
    text = dump_manifest(folders)
    snapshot_id = manifest_id(text)
    path = manifest_path(place.workspace, snapshot_id)
    try:
        # A power cut may leave an empty file under the right name.
        if not _touch(path) or os.path.getsize(path) != len(text):
            write_atomically(place.blobs, path, text)
        _flush(place, stored, path)
    except OSError as error:
        raise SnapshotException(
            "Cannot write the snapshot into the workspace", cause=str(error), hint="Is the disk full or read-only?"
        ) from None
    amount = measure(folders)
    warnings = size_warnings(amount) + _skip_warnings(folders)
    records = [to_record(folder, scan_start_ns) for folder in folders]
    cached = Cached(boot_id(), snapshot_id, amount.files, amount.bytes, warnings, records)
    write_cache(place.blobs, place.cache, place.source, cached)
    return Snapshot(snapshot_id, amount.files, amount.bytes, warnings)


def _flush(place: _Place, stored: set[str], manifest: str) -> None:
    """Flush everything that the cache does not guarantee, so that an acknowledged submit survives a power cut.

    This includes existing blobs: the process that wrote them may have been killed before it flushed them.
    """
    files = {*stored, manifest}
    folders = {os.path.dirname(path) for path in files}
    durable.flush({*files, *folders, place.blobs, place.workspace} if stored else {*files, *folders, place.workspace})


def _skip_warnings(folders: list[Folder]) -> tuple[str, ...]:
    return tuple(
        f"{os.fsdecode(folder.path_of(name))} is a socket, pipe or device and was ignored."
        for folder in folders
        for name in folder.skipped
    )
