"""The kinds of contents that clients send: where each is stored, and how it is named."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from types import MappingProxyType

from blake3 import blake3

from trainmaster.server.errors import refuse
from trainmaster.server.files.opening import OpenFile, open_beneath
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.snapshots.blobs import Hashing, has_blob
from trainmaster.snapshots.commits import MAX_BYTES, MAX_FILES
from trainmaster.snapshots.limits import MEGABYTE, effective_limits
from trainmaster.snapshots.model_contents import is_intact
from trainmaster.snapshots.uploads import is_digest

GIGABYTE = 1024 * MEGABYTE
LARGEST_MODEL_FILE = 1024 * GIGABYTE
LARGEST_WHEEL = 4 * GIGABYTE
MOST_DIGESTS = 2 * MAX_FILES


@dataclass(frozen=True)
class ContentKind:
    """One kind of contents."""

    name: str
    parts: tuple[str, ...]
    """The folder of the contents, in the workspace's folder."""
    hashing: Hashing
    largest: int

    def blobs(self, folder: WorkspaceFolder) -> str:
        """The folder of the contents."""
        return os.path.join(os.path.realpath(folder.path), *self.parts)

    def limit(self) -> int:
        """The largest content in bytes."""
        if self.name != "snapshots":
            return self.largest
        return effective_limits(MAX_BYTES, MAX_FILES, os.environ).max_bytes or self.largest


KINDS: Mapping[str, ContentKind] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            ContentKind("snapshots", ("blobs",), Hashing(blake3, has_blob), LARGEST_MODEL_FILE),
            ContentKind("models", ("models", ".blobs"), Hashing(sha256, is_intact), LARGEST_MODEL_FILE),
            ContentKind("wheels", ("wheels",), Hashing(sha256, lambda *_: False), LARGEST_WHEEL),
        )
    }
)


def find_kind(name: str) -> ContentKind:
    """The kind with this name. Raises HttpError 404."""
    kind = KINDS.get(name)
    if kind is None:
        raise refuse(404, f"there are no contents of the kind {name[:60]!r}", hint=f"Kinds: {', '.join(KINDS)}.")
    return kind


def check_digest(text: str) -> str:
    """The digest, which is 64 hexadecimal digits. Raises HttpError 400."""
    if not is_digest(text):
        raise refuse(400, f"{text[:80]!r} is not a digest", hint="A digest has 64 hexadecimal digits, in lower case.")
    return text


def find_missing(kind: ContentKind, folder: WorkspaceFolder, digests: Sequence[Sequence[object]]) -> list[str]:
    """Those of the digests (each with its size) whose contents are not here."""
    blobs = kind.blobs(folder)
    return [digest for digest, size in _check_pairs(digests) if not kind.hashing.is_there(blobs, digest, size)]


def _check_pairs(digests: Sequence[Sequence[object]]) -> Iterable[tuple[str, int]]:
    if len(digests) > MOST_DIGESTS:
        raise refuse(413, f"{len(digests)} digests are too many", cause=f"The limit is {MOST_DIGESTS}.")
    found: dict[str, int] = {}
    for pair in digests:
        if len(pair) != 2 or not isinstance(pair[0], str) or type(pair[1]) is not int:
            raise refuse(400, "each of the digests must be a pair of digest and size")
        found[check_digest(pair[0])] = pair[1]
    return found.items()


def open_content(kind: ContentKind, folder: WorkspaceFolder, digest: str) -> OpenFile:
    """Open a content. Raises NotBeneathError if it is not here."""
    blobs = kind.blobs(folder)
    return open_beneath(blobs, f"{digest[:2]}/{digest}", [blobs])
