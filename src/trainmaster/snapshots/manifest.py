"""The manifest: what a snapshot consists of, as text whose digest is the snapshot's id."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from json.encoder import encode_basestring_ascii
from pathlib import Path

from blake3 import blake3

from trainmaster.errors import SnapshotException
from trainmaster.plain import PlainDataError, from_plain
from trainmaster.snapshots.blobs import blob_path
from trainmaster.snapshots.tree import LINK, PROGRAM, Folder

MANIFEST_VERSION = 1


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
    """What a snapshot consists of. Paths use `/` and are relative; bytes that are no UTF-8 are surrogates."""

    version: int
    files: tuple[ManifestFile, ...] = ()
    links: tuple[ManifestLink, ...] = ()
    folders: tuple[str, ...] = ()
    """Empty folders."""


def manifest_path(workspace: str, snapshot_id: str) -> str:
    """Where the manifest of a snapshot lies."""
    return f"{workspace}/snapshots/{snapshot_id}.json"


def manifest_id(text: bytes) -> str:
    """The id of the snapshot with this manifest."""
    return blake3(text).hexdigest()


def dump_manifest(folders: Iterable[Folder]) -> bytes:
    """The manifest's text: sorted, one entry a line, and ASCII, so that names that are no UTF-8 survive."""
    files: list[tuple[str, str]] = []
    links: list[tuple[str, str]] = []
    empty: list[str] = []
    # Entries are put together by hand: the general encoder takes three times as long for a large tree.
    for folder in folders:
        prefix = os.fsdecode(folder.path + b"/") if folder.path else ""
        for name, signature, content in zip(folder.names, folder.signatures, folder.contents, strict=True):
            path = prefix + os.fsdecode(name)
            quoted = encode_basestring_ascii(path)
            if content.startswith(LINK):
                target = encode_basestring_ascii(os.fsdecode(content[1:]))
                links.append((path, f'  {{"path": {quoted}, "target": {target}}}'))
                continue
            digest, executable = content[1:].decode(), "true" if content.startswith(PROGRAM) else "false"
            entry = f'"digest": "{digest}", "size": {signature[3]}, "executable": {executable}'
            files.append((path, f'  {{"path": {quoted}, {entry}}}'))
        if folder.kept and folder.path and not folder.names and not folder.subfolders:
            empty.append(prefix[:-1])
    quoted_folders = [f"  {encode_basestring_ascii(path)}" for path in sorted(empty)]
    sections = (("files", _sorted(files)), ("links", _sorted(links)), ("folders", quoted_folders))
    body = ",\n".join(f' "{name}": [{_lines(lines)}]' for name, lines in sections)
    return f'{{"version": {MANIFEST_VERSION},\n{body}}}\n'.encode("ascii")


def _sorted(entries: list[tuple[str, str]]) -> list[str]:
    entries.sort()
    return [text for _, text in entries]


def _lines(lines: list[str]) -> str:
    return "\n" + ",\n".join(lines) if lines else ""


def load_manifest(workspace: Path, snapshot_id: str) -> Manifest:
    """The manifest of a snapshot; one clear error if it is missing or damaged."""
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
        cause=f"{path} is not what was written.",
        hint="Remove the file and submit the run again.",
    )
    if manifest_id(text) != snapshot_id:
        raise damaged
    try:
        return from_plain(Manifest, json.loads(text), "manifest")
    except (ValueError, PlainDataError):
        raise damaged from None


def verify_snapshot(workspace: Path, snapshot_id: str) -> None:
    """Check that the manifest and all blobs of a snapshot are there, in their right size."""
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
