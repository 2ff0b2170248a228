"""Opening the store of a workspace. It is created at first use."""

from __future__ import annotations

import time

from trainmaster.dispatcher.store import Store
from trainmaster.job.errors import WorkspaceException
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
    if folder.database.exists():
        return Store.open(folder.database)
    if folder.runs.is_dir() and any(folder.runs.iterdir()):
        raise WorkspaceException(
            f"the database of the workspace is missing: {folder.database}",
            cause="The workspace is not new: it has runs.",
            hint="Restore the file from a backup, or move the folder away and create a new workspace.",
        )
    return _create(folder)


def _create(folder: WorkspaceFolder) -> Store:
    store = Store.create(folder.database)
    for name, place in ((DEFAULT_DATASTORE, folder.datastore), (FILE_DATASTORE, folder.file_datastore)):
        place.mkdir(exist_ok=True)
        is_default = name == DEFAULT_DATASTORE
        store.datastores.put(DatastoreRecord(name, str(place), is_default=is_default, created_at=time.time()))
    return store
