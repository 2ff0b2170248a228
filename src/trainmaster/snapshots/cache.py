"""Remembers per source folder what was hashed: `snapshots/.cache/<key>`.

An unchanged file is not read again, an unchanged folder is not listed again, and if nothing changed at all, the last
snapshot id is reused. Whether the blobs still exist is not checked, because that would take as long as the snapshot.
Only the garbage collector removes blobs, and it must call `drop_caches` first. The blobs are checked once after a
reboot (a power cut may lose renamed files that were not yet on disk), and if the manifest is missing.
"""

from __future__ import annotations

import contextlib
import gc
import marshal
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from blake3 import blake3

from trainmaster import __version__
from trainmaster.snapshots.blobs import write_atomically
from trainmaster.snapshots.recheck import Record

# Includes the package's version: another version may ignore other names.
_VERSION = f"1 {__version__}"
_CHECKSUM_SIZE = 32


class Cached(NamedTuple):
    """The last snapshot of a source folder."""

    boot_id: str
    snapshot_id: str
    file_count: int
    byte_count: int
    warnings: tuple[str, ...]
    folders: list[Record]


def cache_path(workspace: str, source: bytes) -> str:
    """The path of the cache for the source folder."""
    return f"{workspace}/snapshots/.cache/{blake3(source).hexdigest(16)}"


def read_cache(path: str, source: bytes) -> Cached | None:
    """Read the cache at `path`; None if it is missing, damaged, of another version, or for another folder."""
    try:
        with open(path, "rb", buffering=0) as file:
            content = file.read()
    except OSError:
        return None
    payload = memoryview(content)[_CHECKSUM_SIZE:]
    # Marshal is unsafe for foreign data, so the checksum is verified first.
    if blake3(payload).digest() != content[:_CHECKSUM_SIZE]:
        return None
    with _no_garbage_collection():
        version, known_source, boot_id, snapshot_id, counts, folders, warnings = marshal.loads(payload)
    if version != _VERSION or known_source != source:
        return None
    return Cached(boot_id, snapshot_id, counts[0], counts[1], warnings, folders)


def write_cache(blobs: str, path: str, source: bytes, cached: Cached) -> None:
    """Store `cached` for the next snapshot. A failure only costs time and is ignored."""
    counts = (cached.file_count, cached.byte_count)
    fields = (_VERSION, source, cached.boot_id, cached.snapshot_id, counts, cached.folders, cached.warnings)
    payload = marshal.dumps(fields)
    with contextlib.suppress(OSError):
        write_atomically(blobs, path, blake3(payload).digest() + payload)


def drop_caches(workspace: Path) -> None:
    """Forget what was hashed. Must be called before blobs or manifests are removed."""
    folder = workspace / "snapshots" / ".cache"
    with contextlib.suppress(FileNotFoundError):
        for entry in folder.iterdir():
            entry.unlink(missing_ok=True)


def boot_id() -> str:
    """The id of the current boot of the machine; empty if unknown."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


@contextlib.contextmanager
def _no_garbage_collection() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
