"""Snapshots and models whose contents came from another machine: their lists are checked here, then stored.

Whoever sends a list is not trusted: every path stays inside, nothing is written through a link, and all contents are
here before the list is.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from trainmaster.job.agent import durable
from trainmaster.job.errors import SnapshotException, WebserviceException
from trainmaster.job.helper.safe_names import inner_parts
from trainmaster.shared.serialization import PlainDataError, from_plain
from trainmaster.snapshots.blobs import blob_path, has_blob, write_atomically
from trainmaster.snapshots.collect import taking
from trainmaster.snapshots.limits import MEGABYTE, Amount, effective_limits, is_within
from trainmaster.snapshots.manifest import MANIFEST_VERSION, manifest_id, manifest_path
from trainmaster.snapshots.model_contents import Manifest as ModelList
from trainmaster.snapshots.model_contents import check_paths as check_model_paths
from trainmaster.snapshots.uploads import is_digest
from trainmaster.snapshots.verify import Manifest

MAX_BYTES = 300 * MEGABYTE
MAX_FILES = 100_000


class MissingContentsError(Exception):
    """Contents that a list names are not here."""

    def __init__(self, digests: Sequence[str]) -> None:
        super().__init__(f"{len(digests)} contents are missing")
        self.digests = digests


def commit_snapshot(workspace: Path, snapshot_id: str, text: bytes, environment: Mapping[str, str]) -> None:
    """Store the manifest `text` of a snapshot whose contents are all here.

    Raises SnapshotException if it is not a manifest or above the limits, and MissingContentsError.
    """
    if manifest_id(text) != snapshot_id:
        raise SnapshotException(
            "The manifest does not have this id",
            cause="The id of a snapshot is the BLAKE3 digest of its manifest.",
            hint="Take the snapshot again.",
        )
    manifest = parse_manifest(text)
    _check_amount(manifest, environment)
    blobs = str(workspace / "blobs")
    path = manifest_path(str(workspace), snapshot_id)
    # The collector removes nothing between the look at the contents and the manifest that needs them.
    with taking(str(workspace)):
        missing = {file.digest for file in manifest.files if not has_blob(blobs, file.digest, file.size)}
        if missing:
            raise MissingContentsError(sorted(missing))
        write_atomically(blobs, path, text)
        _flush([blob_path(blobs, file.digest) for file in manifest.files], path, workspace)


def _flush(contents: Iterable[str], path: str, workspace: Path) -> None:
    files = {*contents, path}
    durable.flush({*files, *(os.path.dirname(file) for file in files), str(workspace)})


def parse_manifest(text: bytes) -> Manifest:
    """The manifest of a snapshot from a client. Raises SnapshotException if it is not a proper one."""
    try:
        manifest = from_plain(Manifest, json.loads(text), "manifest")
        _check_manifest(manifest)
    except (ValueError, PlainDataError, RecursionError) as error:
        raise SnapshotException("The manifest of the snapshot cannot be used", cause=str(error)[:500]) from None
    return manifest


def _check_manifest(manifest: Manifest) -> None:
    """Raise ValueError for a manifest that no snapshot has."""
    if manifest.version != MANIFEST_VERSION:
        raise ValueError(f"version {manifest.version} is unknown")
    for file in manifest.files:
        if not is_digest(file.digest) or not 0 <= file.size < 1 << 60:
            raise ValueError(f"{file.path[:300]!r} has no proper digest or size")
    if any("\0" in link.target or not link.target for link in manifest.links):
        raise ValueError("a link has no proper target")
    files, links = [file.path for file in manifest.files], [link.path for link in manifest.links]
    _check_tree([*files, *links, *manifest.folders])


def _check_tree(paths: Sequence[str]) -> None:
    """Each path stays inside, appears once, and is not below a file or a link."""
    known = set(paths)
    if len(known) != len(paths):
        raise ValueError("a path appears twice")
    for path in paths:
        parts = inner_parts(path)
        above = ""
        for part in parts[:-1]:
            above = f"{above}/{part}" if above else part
            if above in known:
                raise ValueError(f"{path[:300]!r} is below {above[:300]!r}, which is not a folder with contents")


def _check_amount(manifest: Manifest, environment: Mapping[str, str]) -> None:
    limits = effective_limits(MAX_BYTES, MAX_FILES, environment)
    amount = Amount(len(manifest.files) + len(manifest.links), sum(file.size for file in manifest.files))
    if not is_within(amount, limits) or len(manifest.folders) > MAX_FILES:
        raise SnapshotException(
            f"The snapshot is too large: {amount.files:,} files with {amount.bytes / MEGABYTE:,.1f} MB",
            cause=f"The server allows {limits.max_files:,} files"
            f" and {(limits.max_bytes or 0) / MEGABYTE:,.0f} MB in one snapshot.",
            hint="Exclude what the script does not need by lines in .amlignore; keep data in a datastore. "
            "The server's administrator can raise the limits with TRAINMASTER_SNAPSHOT_MAX_MB and "
            "TRAINMASTER_SNAPSHOT_MAX_FILES.",
        )


def renew_snapshot(workspace: Path, snapshot_id: str) -> bool:
    """Whether the snapshot is here; if so, it is kept for the next hour even if no run refers to it yet."""
    try:
        os.utime(manifest_path(str(workspace), snapshot_id))
    except OSError:
        return False
    return True


def commit_model_list(models: Path, digest: str, text: bytes) -> None:
    """Store the list `text` of a model's files, whose contents are all here, in the folder `models`.

    Raises WebserviceException if it is not a list, and MissingContentsError.
    """
    if sha256(text).hexdigest() != digest:
        raise WebserviceException(
            "The list of the model's files does not have this digest",
            cause="It is the SHA-256 of the list.",
            hint="Register the model again.",
        )
    found = _parse_model_list(text)
    blobs = str(models / ".blobs")
    missing = {file.digest for file in found.files if not has_blob(blobs, file.digest, file.size)}
    if missing:
        raise MissingContentsError(sorted(missing))
    path = str(models / ".lists" / f"{digest}.json")
    write_atomically(blobs, path, text)
    _flush([*(blob_path(blobs, file.digest) for file in found.files), str(models)], path, models.parent)


def _parse_model_list(text: bytes) -> ModelList:
    try:
        found = check_model_paths(from_plain(ModelList, json.loads(text)))
        if found.version != 1 or not found.files:
            raise ValueError("it has no files, or its version is unknown")
        for file in found.files:
            if not is_digest(file.digest) or not 0 <= file.size < 1 << 60:
                raise ValueError(f"{file.path[:300]!r} has no proper digest or size")
        _check_tree([file.path for file in found.files])
    except (ValueError, PlainDataError, RecursionError) as error:
        raise WebserviceException("The list of the model's files cannot be used", cause=str(error)[:500]) from None
    return found
