"""Opening storages by their address."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from trainmaster.job.errors import DatastoreException, UserErrorException
from trainmaster.job.script.storage import Storage
from trainmaster.job.script.store_folder import FolderStorage

SEALED = "sealed"
"""The one option of a store whose options are encrypted: only the dispatcher can open them."""


def open_storage(url: str, options: Mapping[str, Any] | None = None) -> Storage:
    """The store at `url`: a folder, or anything fsspec can open with `options`."""
    folder = local_folder(url)
    if folder is not None:
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
