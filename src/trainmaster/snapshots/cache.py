"""What was hashed already, by source folder: `snapshots/.cache/<key>`.

An unchanged file is not read again, an unchanged folder is not listed again, and if nothing changed at all the last id
holds. That the blobs are still there is not checked, since it would cost as much as the snapshot: only the garbage
collector removes blobs, and it must call `drop_caches` first. After a reboot (a power cut may lose what was renamed but
not yet on disk), or when the manifest is gone, the blobs are checked once.
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

# With the package's own version: another one may leave out other names.
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
    """Where the cache for the source folder lies."""
    return f"{workspace}/snapshots/.cache/{blake3(source).hexdigest(16)}"


def read_cache(path: str, source: bytes) -> Cached | None:
    """The cache at `path`; None if it is missing, damaged, of another version, or of another folder."""
    try:
        with open(path, "rb", buffering=0) as file:
            content = file.read()
    except OSError:
        return None
    payload = memoryview(content)[_CHECKSUM_SIZE:]
    # Marshal trusts what it reads, so only bytes that were written here are given to it.
    if blake3(payload).digest() != content[:_CHECKSUM_SIZE]:
        return None
    with _no_garbage_collection():
        version, known_source, boot_id, snapshot_id, counts, folders, warnings = marshal.loads(payload)
    if version != _VERSION or known_source != source:
        return None
    return Cached(boot_id, snapshot_id, counts[0], counts[1], warnings, folders)


def write_cache(blobs: str, path: str, source: bytes, cached: Cached) -> None:
    """Keep `cached` for next time. A cache that cannot be written only costs time, so that is no error."""
    counts = (cached.file_count, cached.byte_count)
    fields = (_VERSION, source, cached.boot_id, cached.snapshot_id, counts, cached.folders, cached.warnings)
    payload = marshal.dumps(fields)
    with contextlib.suppress(OSError):
        write_atomically(blobs, path, blake3(payload).digest() + payload)


def drop_caches(workspace: Path) -> None:
    """Forget what was hashed. To be called before blobs or manifests are removed."""
    folder = workspace / "snapshots" / ".cache"
    with contextlib.suppress(FileNotFoundError):
        for entry in folder.iterdir():
            entry.unlink(missing_ok=True)


def boot_id() -> str:
    """The name of this boot of the machine; empty where there is none."""
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
