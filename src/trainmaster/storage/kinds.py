"""The kind of storage behind a URL, in v1's words. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from trainmaster.storage.urls import local_folder, protocol_of

_V1_TYPES = {"workspaceblobstore": "AzureBlob", "workspacefilestore": "AzureFile"}
_TYPES = {"az": "AzureBlob", "abfs": "AzureBlob", "abfss": "AzureBlob", "s3": "S3", "gs": "GoogleStorage"}


def storage_type(name: str, url: str) -> str:
    """v1's type of the storage at `url`. The default datastores keep their v1 types."""
    if name in _V1_TYPES:
        return _V1_TYPES[name]
    protocol = protocol_of(url)
    return "Folder" if local_folder(url) else _TYPES.get(protocol, protocol)


def account_name(url: str, options: Mapping[str, Any]) -> str:
    """The storage account; `local` for a folder."""
    return "local" if local_folder(url) else str(options.get("account_name", ""))


def container_name(url: str) -> str:
    """The bucket or container; for a folder, its name."""
    folder = local_folder(url)
    return folder.name if folder else urlsplit(url).netloc.rpartition("@")[2]
