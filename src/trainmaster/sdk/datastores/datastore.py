"""Datastore: a named storage of a workspace."""

from __future__ import annotations

import inspect
import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.datastores.azure_registrations import AzureRegistrations
from trainmaster.sdk.datastores.reference import DataReference
from trainmaster.shared.job_spec import DataBinding
from trainmaster.shared.records import DatastoreRecord
from trainmaster.shared.serialization import from_plain, to_plain
from trainmaster.storage.kinds import account_name, container_name, storage_type
from trainmaster.storage.paths import checked_name, shown, store_path
from trainmaster.storage.progress import Say, say_aloud, say_nothing
from trainmaster.storage.sources import Sources, sources_in, sources_of
from trainmaster.storage.storage import Storage, local_folder, open_storage, shown_url
from trainmaster.storage.transfer import download, files_by_prefix, upload

PathText = str | os.PathLike[str]

# v1 notebooks look at these: the stores every workspace has keep the types they had.


class Calls(Protocol):
    """What a datastore needs of a connection."""

    def call(self, op: str, **args: Any) -> Any:
        """The result of operation `op`."""


class WorkspaceSide(Protocol):
    """What a datastore needs of its workspace."""

    @property
    def name(self) -> str:
        """The workspace's name."""

    @property
    def connection(self) -> Calls:
        """Its dispatcher."""


class _ByStorage(type):
    """Lets `Datastore(workspace, name)` give the class that belongs to the storage, as in v1."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made = super().__call__(*args, **kwargs)
        return Datastore.of_record(made.workspace, made._record) if cls is Datastore else made

    @property
    def __signature__(cls) -> inspect.Signature:
        """That of the class itself, for people who ask for help."""
        parameters = list(inspect.signature(cls.__init__).parameters.values())  # type: ignore[misc]
        return inspect.Signature(parameters[1:])


class Datastore(AzureRegistrations, metaclass=_ByStorage):
    """A named storage: a folder, or any address that fsspec knows.

    store = Datastore.get_default(workspace)
    store.upload('./mnist', target_path='mnist')
    reference = store.path('mnist').as_mount()
    """

    def __init__(self, workspace: WorkspaceSide, name: str | None = None) -> None:
        wanted = None if name is None else checked_name(name, "datastore")
        found = workspace.connection.call("datastores.get", name=wanted)
        if found is None:
            known = ", ".join(sorted(record["name"] for record in workspace.connection.call("datastores.list")))
            raise UserErrorException(
                f"Workspace {workspace.name!r} has no datastore {wanted!r}"
                if wanted
                else f"Workspace {workspace.name!r} has no default datastore",
                hint=f"It has: {known}." if known else "Register one with Datastore.register.",
            )
        self._take(workspace, from_plain(DatastoreRecord, found))

    @classmethod
    def of_record(cls, workspace: WorkspaceSide, record: DatastoreRecord) -> Datastore:
        """The datastore that `record` describes, without asking the workspace for it."""
        from trainmaster.sdk.datastores.azure_datastores import class_of

        store = object.__new__(class_of(record))
        store._take(workspace, record)
        return store

    @staticmethod
    def get(workspace: WorkspaceSide, datastore_name: str) -> Datastore:
        """The datastore with this name."""
        return Datastore(workspace, checked_name(datastore_name, "datastore"))

    @staticmethod
    def get_default(workspace: WorkspaceSide) -> Datastore:
        """The default datastore of the workspace."""
        return Datastore(workspace)

    @staticmethod
    def get_all(workspace: WorkspaceSide) -> dict[str, Datastore]:
        """All datastores of the workspace, by name."""
        records = [from_plain(DatastoreRecord, item) for item in workspace.connection.call("datastores.list")]
        return {record.name: Datastore.of_record(workspace, record) for record in records}

    @staticmethod
    def register(
        workspace: WorkspaceSide,
        name: str,
        url: PathText,
        options: Mapping[str, Any] | None = None,
        overwrite: bool = False,
    ) -> Datastore:
        """Give a storage a name: a folder, or an address such as `s3://bucket/folder`.

        `options` go to the fsspec driver (keys, endpoint, ...) and are kept encrypted in the workspace; a
        driver that finds its credentials by itself (variables, profile) needs none.
        """
        record = DatastoreRecord(
            name=checked_name(name, "datastore"),
            url=_checked_url(url),
            options=_checked_options(options),
            created_at=time.time(),
        )
        workspace.connection.call("datastores.put", record=to_plain(record), overwrite=overwrite)
        return Datastore.of_record(workspace, record)

    def set_as_default(self) -> None:
        """Make this the workspace's default datastore."""
        self.workspace.connection.call("datastores.set_default", name=self.name)

    def unregister(self) -> None:
        """Forget the datastore; what is stored in it stays."""
        self.workspace.connection.call("datastores.delete", name=self.name)

    def upload(
        self,
        src_dir: PathText,
        target_path: PathText | None = None,
        overwrite: bool = False,
        show_progress: bool = True,
    ) -> DataReference:
        """Copy the files of a folder to `target_path`; files that are there stay, unless `overwrite`."""
        storage = self.storage()
        # Uploading '.' must not take the store itself along, which may lie in there.
        sources = sources_in(Path(src_dir), except_for=storage.local_path())
        return self._upload(storage, sources, target_path, overwrite, show_progress)

    def upload_files(
        self,
        files: Sequence[PathText],
        relative_root: PathText | None = None,
        target_path: PathText | None = None,
        overwrite: bool = False,
        show_progress: bool = True,
    ) -> DataReference:
        """Copy the listed files to `target_path`, by their paths from `relative_root` or common folder."""
        return self._upload(self.storage(), sources_of(files, relative_root), target_path, overwrite, show_progress)

    def download(
        self,
        target_path: PathText,
        prefix: PathText | None = None,
        overwrite: bool = False,
        show_progress: bool = True,
    ) -> int:
        """Copy the files below `prefix` into the folder `target_path`, by their full paths; how many."""
        target = Path(target_path)
        if target.exists() and not target.is_dir():
            raise UserErrorException(f"The target of a download, {shown(target)}, is not a folder")
        storage = self.storage()
        files = [(file, target / file.path) for file in files_by_prefix(storage, store_path(prefix))]
        return download(storage, files, overwrite, _say(show_progress), f"datastore {self.name!r}")

    def path(self, path: PathText | None = None, data_reference_name: str | None = None) -> DataReference:
        """A reference to a file or folder of the datastore; none means all of it."""
        return DataReference(self, data_reference_name, path)

    def as_mount(self) -> DataReference:
        """A reference to the whole datastore, seen where it lies."""
        return self.path().as_mount()

    def as_download(self, path_on_compute: PathText | None = None) -> DataReference:
        """A reference to the whole datastore, copied to the node before the script starts."""
        return self.path().as_download(path_on_compute)

    def as_upload(self, path_on_compute: PathText | None = None) -> DataReference:
        """A reference to the root of the datastore, filled with what the script wrote."""
        return self.path().as_upload(path_on_compute)

    def to_binding(self) -> DataBinding:
        """A bare datastore in a job means: mount all of it."""
        return self.as_mount().to_binding()

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
        """The bucket or container; of a folder, its name."""
        return container_name(self.url)

    def _take(self, workspace: WorkspaceSide, record: DatastoreRecord) -> None:
        self.workspace = workspace
        self.name = record.name
        self.url = record.url
        self._record = record

    def storage(self) -> Storage:
        """The files of it, to be listed and copied."""
        return open_storage(self.url, self._record.options)

    def _upload(
        self,
        storage: Storage,
        sources: Sources,
        target_path: PathText | None,
        overwrite: bool,
        show_progress: bool,
    ) -> DataReference:
        reference = self.path(target_path)
        target = reference.path_on_datastore
        upload(storage, sources, target, overwrite, _say(show_progress), f"datastore {self.name!r}")
        return reference

    def __repr__(self) -> str:
        # Never the options: they may hold keys.
        return f"Datastore(name={self.name!r}, url={shown_url(self.url)!r})"


def _say(show_progress: bool) -> Say:
    return say_aloud if show_progress else say_nothing


def _checked_url(url: PathText) -> str:
    text = os.fspath(url)
    if not isinstance(text, str) or not text.strip() or not text.isprintable():
        raise UserErrorException(
            f"{text!r} is not an address", hint="Give a folder, or an address such as s3://bucket."
        )
    if re.match(r"[a-z][a-z0-9+.-]+:(?!//|:)", text):
        # Else a slip such as s3:/bucket would be taken for a folder of that name.
        raise UserErrorException(f"{text!r} is not an address", hint="After the colon there have to be two slashes.")
    folder = local_folder(text)
    if folder is None:
        from trainmaster.storage.remote import check_driver

        check_driver(text)
        return text
    if folder.exists() and not folder.is_dir():
        raise UserErrorException(f"{shown(folder)} is a file, not a folder")
    return str(folder)


def _checked_options(options: Mapping[str, Any] | None) -> dict[str, Any]:
    plain = dict(options or {})
    try:
        json.dumps(plain)
    except (TypeError, ValueError) as error:
        raise UserErrorException(
            "The options of a datastore must be plain values (text, numbers, lists, ...)", cause=str(error)
        ) from None
    return plain
