"""Storage: what is asked of a store, and how one is opened."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from trainmaster.job.errors import DatastoreException, UserErrorException

SEALED = "sealed"
"""The one option of a store whose options are encrypted: only the dispatcher can open them."""


class StoredFile(NamedTuple):
    """A file of a store: its path from the root, and its size in bytes."""

    path: str
    size: int


class Storage(Protocol):
    """A place that keeps files by path. Its methods raise DatastoreException for what goes wrong there."""

    def list(self, prefix: str) -> list[StoredFile]:
        """The files at and below `prefix`, sorted; the path of a file gives that file, a missing one none."""

    def exists(self, path: str) -> bool:
        """Whether a file (not a folder) lies at `path`."""

    def get(self, path: str, local: Path) -> None:
        """Copy the file at `path` to `local`, which is either complete or absent."""

    def put(self, local: Path, path: str) -> None:
        """Copy the file `local` to `path`, over one that is there."""

    def local_path(self) -> Path | None:
        """The folder of a store that lies on this machine's disk."""


def open_storage(url: str, options: Mapping[str, Any] | None = None) -> Storage:
    """The store at `url`: a folder, or anything fsspec can open with `options`."""
    folder = local_folder(url)
    if folder is not None:
        from trainmaster.storage.folder import FolderStorage

        return FolderStorage(folder)
    if options and SEALED in options:
        raise DatastoreException(
            f"the credentials of {shown_url(url)} cannot be decrypted",
            cause="The key of the workspace's secrets is missing, or is another one (TRAINMASTER_HOME/keys).",
            hint="Put the key back, or register the datastore again with overwrite=True.",
        )
    from trainmaster.storage.remote import RemoteStorage

    return RemoteStorage.open(url, dict(options or {}))


def local_folder(url: str) -> Path | None:
    """The folder that `url` means, or none when it lies elsewhere.

    >>> local_folder("file:///data/sets"), local_folder("s3://bucket")
    (PosixPath('/data/sets'), None)
    """
    if url.startswith(("/", ".", "~")) or ("://" not in url and "::" not in url):
        return Path(os.path.normpath(Path(url).expanduser().absolute()))
    if "::" in url or protocol_of(url) not in ("file", "local"):
        return None
    address = urlsplit(url)
    if address.netloc not in ("", "localhost"):
        raise UserErrorException(
            f"{shown_url(url)} names another machine", hint="A file URL has three slashes: file:///folder."
        )
    return Path(os.path.normpath("/" + unquote(address.path).lstrip("/")))


def protocol_of(url: str) -> str:
    """The first part of a URL, such as `s3`; of a chain (`zip::s3://...`), the outermost."""
    return url.split("::")[0].split("://")[0].lower()


def shown_url(url: str) -> str:
    """`url` for messages: without a password."""
    return re.sub(r"(://[^/@:]*):[^/@]*@", r"\1:***@", url)
