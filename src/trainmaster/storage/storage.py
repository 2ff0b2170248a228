"""Opens storages by URL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainmaster.job.errors import DatastoreException
from trainmaster.job.script.storage import Storage
from trainmaster.job.script.store_folder import FolderStorage
from trainmaster.storage.urls import local_folder, mask_url

SEALED = "sealed"
"""The only option of a store whose options are encrypted. Only the dispatcher can decrypt them."""


def open_storage(url: str, options: Mapping[str, Any] | None = None) -> Storage:
    """Open the store at `url`: a folder, or anything fsspec can open with `options`."""
    folder = local_folder(url)
    if folder is not None:
        return FolderStorage(folder)
    if options and SEALED in options:
        raise DatastoreException(
            f"the credentials of {mask_url(url)} cannot be decrypted",
            cause="The key of the workspace's secrets (in TRAINMASTER_HOME/keys) is missing or has changed.",
            hint="Restore the key, or register the datastore again with overwrite=True.",
        )
    from trainmaster.storage.remote import RemoteStorage

    return RemoteStorage.open(url, dict(options or {}))
