"""Datastore: a named storage of a workspace."""

from __future__ import annotations

import inspect
import json
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from trainmaster.job.errors import UserErrorException
from trainmaster.job.script.registered_datastore import RegisteredDatastore, missing_datastore
from trainmaster.job.script.storage import Storage
from trainmaster.job.script.store_paths import check_name, printable
from trainmaster.job.script.store_transfer import download, files_by_prefix, upload
from trainmaster.sdk.datastores.azure_registrations import AzureRegistrations
from trainmaster.sdk.datastores.reference import DataReference
from trainmaster.shared.job_spec import DataBinding
from trainmaster.shared.records import DatastoreRecord
from trainmaster.shared.serialization import from_plain, to_plain
from trainmaster.storage.kinds import account_name, container_name, storage_type
from trainmaster.storage.urls import local_folder, mask_url

if TYPE_CHECKING:
    from trainmaster.job.script.store_progress import Say
    from trainmaster.job.script.store_sources import Sources

PathText = str | os.PathLike[str]


class Calls(Protocol):
    """What a datastore needs of a connection."""

    def call(self, op: str, **args: Any) -> Any:
        """The result of operation `op`."""


class Storages(Protocol):
    """What a datastore needs of a backend."""

    def open_storage(self, store: DatastoreRecord) -> Storage:
        """The files of a datastore."""


class WorkspaceSide(Protocol):
    """What a datastore needs of its workspace."""

    @property
    def name(self) -> str:
        """The workspace's name."""

    @property
    def connection(self) -> Calls:
        """The connection to the dispatcher."""

    @property
    def backend(self) -> Storages:
        """What opens storages."""


class _ByStorage(type):
    """Makes `Datastore(workspace, name)` return an object of the class for the storage, as in v1."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        store = super().__call__(*args, **kwargs)
        return Datastore.from_record(store.workspace, store._record) if cls is Datastore else store

    @property
    def __signature__(cls) -> inspect.Signature:
        """The signature of the class itself, for `help`."""
        parameters = list(inspect.signature(cls.__init__).parameters.values())  # type: ignore[misc]
        return inspect.Signature(parameters[1:])


_CLASSES: dict[str, type[Datastore]] = {}
"""v1's classes by the type of storage."""


class Datastore(AzureRegistrations, RegisteredDatastore, metaclass=_ByStorage):
    """A named storage: a folder, or any address that fsspec knows.

    store = Datastore.get_default(workspace)
    store.upload('./mnist', target_path='mnist')
    reference = store.path('mnist').as_mount()
    """

    def __init__(self, workspace: WorkspaceSide, name: str | None = None) -> None:
        wanted = None if name is None else check_name(name, "datastore")
        found = workspace.connection.call("datastores.get", name=wanted)
        if found is None:
            known = [record["name"] for record in workspace.connection.call("datastores.list")]
            raise missing_datastore(workspace.name, wanted, known)
        self._set(workspace, from_plain(DatastoreRecord, found))

    @classmethod
    def from_record(cls, workspace: WorkspaceSide, record: DatastoreRecord) -> Datastore:
        """The datastore that `record` describes, without asking the workspace for it."""
        store = object.__new__(_CLASSES.get(storage_type(record.name, record.url), Datastore))
        store._set(workspace, record)
        return store

    def __init_subclass__(cls, storage_type: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if storage_type:
            _CLASSES[storage_type] = cls

    @staticmethod
    def get(workspace: WorkspaceSide, datastore_name: str) -> Datastore:
        """The datastore with this name."""
        return Datastore(workspace, check_name(datastore_name, "datastore"))

    @staticmethod
    def get_default(workspace: WorkspaceSide) -> Datastore:
        """The default datastore of the workspace."""
        return Datastore(workspace)

    @staticmethod
    def get_all(workspace: WorkspaceSide) -> dict[str, Datastore]:
        """All datastores of the workspace, by name."""
        records = [from_plain(DatastoreRecord, item) for item in workspace.connection.call("datastores.list")]
        return {record.name: Datastore.from_record(workspace, record) for record in records}

    @staticmethod
    def register(
        workspace: WorkspaceSide,
        name: str,
        url: PathText,
        options: Mapping[str, Any] | None = None,
        overwrite: bool = False,
    ) -> Datastore:
        """Gives a storage a name: a folder, or an address such as `s3://bucket/folder`.

        `options` (keys, endpoint, ...) are passed to the fsspec driver, and are kept encrypted in the workspace. A
        driver that finds its credentials itself (variables, profile) needs none.
        """
        record = DatastoreRecord(
            name=check_name(name, "datastore"),
            url=_check_url(url),
            options=_check_options(options),
            created_at=time.time(),
        )
        workspace.connection.call("datastores.put", record=to_plain(record), overwrite=overwrite)
        return Datastore.from_record(workspace, record)

    def set_as_default(self) -> None:
        """Makes this the workspace's default datastore."""
        self.workspace.connection.call("datastores.set_default", name=self.name)

    def unregister(self) -> None:
        """Removes the datastore from the workspace; its files stay."""
        self.workspace.connection.call("datastores.delete", name=self.name)

    def to_binding(self) -> DataBinding:
        """The form that a job specification holds: a datastore without a path is mounted as a whole."""
        reference: DataReference = self.as_mount()
        return reference.to_binding()

    @property
    def datastore_type(self) -> str:
        """`AzureBlob` for the workspace's own store, as in v1; else `Folder`, `S3`, ... or the protocol."""
        return storage_type(self.name, self.url)

    @property
    def account_name(self) -> str:
        """The storage account; `local` for a folder."""
        return account_name(self.url, self._record.options)

    @property
    def container_name(self) -> str:
        """The bucket or container; for a folder, its name."""
        return container_name(self.url)

    def _set(self, workspace: WorkspaceSide, record: DatastoreRecord) -> None:
        self.workspace = workspace
        self.name = record.name
        self.url = record.url
        self._record = record

    def storage(self) -> Storage:
        """The files of the datastore, which can be listed and copied."""
        found: Storage = self.workspace.backend.open_storage(self._record)
        return found

    def _make_reference(self, name: str | None, path: PathText | None) -> DataReference:
        return DataReference(self, name, path)

    def _own_folder(self) -> Path | None:
        place = self.storage().local_path() if local_folder(self.url) else None
        return Path(place) if place else None

    def _send(self, sources: Sources, target: str, overwrite: bool, say: Say) -> None:
        upload(self.storage(), sources, target, overwrite, say, f"datastore {self.name!r}")

    def _fetch(self, prefix: str, target: str, overwrite: bool, say: Say) -> int:
        storage = self.storage()
        files = [(file, os.path.join(target, file.path)) for file in files_by_prefix(storage, prefix)]
        return download(storage, files, overwrite, say, f"datastore {self.name!r}")

    def __repr__(self) -> str:
        # Without the options: they may contain keys.
        return f"Datastore(name={self.name!r}, url={mask_url(self.url)!r})"


def _check_url(url: PathText) -> str:
    text = os.fspath(url)
    if not isinstance(text, str) or not text.strip() or not text.isprintable():
        raise UserErrorException(
            f"{text!r} is not an address", hint="Give a folder, or an address such as s3://bucket."
        )
    if re.match(r"[a-z][a-z0-9+.-]+:(?!//|:)", text):
        # Otherwise a typo such as s3:/bucket would mean a folder of that name.
        raise UserErrorException(f"{text!r} is not an address", hint="Write two slashes after the colon.")
    folder = local_folder(text)
    if folder is None:
        from trainmaster.storage.remote import check_driver

        check_driver(text)
        return text
    if folder.exists() and not folder.is_dir():
        raise UserErrorException(f"{printable(folder)} is a file, not a folder")
    return str(folder)


def _check_options(options: Mapping[str, Any] | None) -> dict[str, Any]:
    plain = dict(options or {})
    try:
        json.dumps(plain)
    except (TypeError, ValueError) as error:
        raise UserErrorException(
            "The options of a datastore must be plain values (text, numbers, lists, ...)", cause=str(error)
        ) from None
    return plain
