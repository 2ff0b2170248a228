"""Opening the store of a workspace. It is created at first use."""

from __future__ import annotations

import time

from trainmaster.dispatcher.store import Store
from trainmaster.dispatcher.store.opening import Place
from trainmaster.job.errors import WorkspaceException
from trainmaster.shared.database_address import POSTGRESQL, DatabaseAddress, read_address
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.records import DatastoreRecord

DEFAULT_DATASTORE = "workspaceblobstore"
# v1's second datastore, which scripts use by its name.
FILE_DATASTORE = "workspacefilestore"


def open_store(folder: WorkspaceFolder) -> Store:
    """Open the store of a workspace, or create it if the workspace is new."""
    if not folder.identity.is_file():
        raise WorkspaceException(
            f"{folder.path} is not a workspace: it has no workspace.json",
            hint="Create one with Workspace.create(name=..., path=...).",
        )
    address = read_address(folder)
    if address is not None:
        return _open_on_server(folder, address)
    if folder.read_identity().get("database") == POSTGRESQL:
        raise WorkspaceException(
            f"the address of the workspace's database is missing: {folder.database_address}",
            hint='Restore the file. It contains {"url": "postgresql://..."}, and only its owner may read it.',
        )
    if folder.database.exists():
        return Store.open(folder.database)
    if folder.runs.is_dir() and any(folder.runs.iterdir()):
        raise WorkspaceException(
            f"the database of the workspace is missing: {folder.database}",
            cause="The workspace is not new: it has runs.",
            hint="Restore the file from a backup, or move the folder away and create a new workspace.",
        )
    return _create(folder, folder.database)


def _open_on_server(folder: WorkspaceFolder, address: DatabaseAddress) -> Store:
    from trainmaster.dispatcher.store.postgresql import has_store

    if has_store(address):
        return Store.open(address)
    if folder.runs.is_dir() and any(folder.runs.iterdir()):
        raise WorkspaceException(
            f"the database {address} is empty",
            cause="The workspace is not new: it has runs.",
            hint=f"Restore the schema from a backup, or correct the address in {folder.database_address}.",
        )
    return _create(folder, address)


def _create(folder: WorkspaceFolder, place: Place) -> Store:
    store = Store.create(place)
    for name, path in ((DEFAULT_DATASTORE, folder.datastore), (FILE_DATASTORE, folder.file_datastore)):
        path.mkdir(exist_ok=True)
        is_default = name == DEFAULT_DATASTORE
        store.datastores.put(DatastoreRecord(name, str(path), is_default=is_default, created_at=time.time()))
    return store
