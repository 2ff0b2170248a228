"""The operations of jobs on datastores: list them, and copy between a datastore and the run's folder."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.credentials import unseal_options
from trainmaster.dispatcher.operation import operation
from trainmaster.dispatcher.processes import run_module
from trainmaster.dispatcher.runs.lookup import require_run
from trainmaster.job.errors import DatastoreException, UserErrorException
from trainmaster.job.helper.safe_names import inner_parts
from trainmaster.shared.records import DatastoreRecord
from trainmaster.shared.serialization import to_plain
from trainmaster.storage.kinds import account_name, container_name, storage_type
from trainmaster.storage.urls import local_folder, mask_url


class StorageRequests:
    """The operations of jobs on datastores."""

    def __init__(self, context: Context) -> None:
        self._context = context

    @operation("datastores.describe")
    def describe(self) -> list[dict[str, Any]]:
        """All datastores by name, without their options, which contain keys."""
        return [_describe(self._open(store)) for store in self._context.store.datastores.list_all()]

    @operation("datastores.fetch")
    async def fetch(self, store: str, prefix: str, run_id: str, files: str) -> str:
        """Copies the files at `prefix` from a datastore to the folder `files` of a run; returns its path."""
        folder = await self._go(store, run_id, files, prefix=prefix)
        return str(folder)

    @operation("datastores.send")
    async def send(self, store: str, target: str, overwrite: bool, run_id: str, files: str) -> str:
        """Copies the folder `files` of a run to `target` in a datastore; returns the log."""
        folder = await self._go(store, run_id, files, target=target, overwrite=overwrite)
        return (await asyncio.to_thread(_log_of(folder).read_text, "utf-8")).rstrip("\n")

    async def _go(self, name: str, run_id: str, files: str, **what: Any) -> Path:
        record = self._context.store.datastores.get(name)
        if record is None:
            raise DatastoreException(f"there is no datastore '{name[:300]}' in this workspace")
        require_run(self._context.store, run_id)
        folder = self._context.folder.run(run_id).path / inner(files)
        folder.mkdir(parents=True, exist_ok=True)
        order = {"store": to_plain(self._open(record)), "files": str(folder), **what}
        # A separate process, so that the dispatcher never loads a storage driver. Keys are passed through a pipe.
        command = ["trainmaster.storage.storage_request", str(os.getpid())]
        await run_module(command, _log_of(folder), dict(os.environ), json.dumps(order).encode())
        return folder

    def _open(self, record: DatastoreRecord) -> DatastoreRecord:
        return unseal_options(record, self._context.secrets)


def _describe(record: DatastoreRecord) -> dict[str, Any]:
    folder = local_folder(record.url)
    return {
        "name": record.name,
        "is_default": record.is_default,
        "url": mask_url(record.url),
        "folder": None if folder is None else str(folder),
        "inode": _inode(folder),
        "datastore_type": storage_type(record.name, record.url),
        "account_name": account_name(record.url, record.options),
        "container_name": container_name(record.url),
    }


def inner(path: Any) -> Path:
    """A relative path that cannot leave its folder."""
    try:
        return Path(*inner_parts(path))
    except ValueError:
        raise UserErrorException(f"{str(path)[:300]!r} is not in the folder of the run") from None


def _log_of(folder: Path) -> Path:
    return folder.with_name("log.txt")


def _inode(folder: Path | None) -> int:
    """The inode of a folder, by which a job can tell whether it sees the same folder; 0 if there is none."""
    try:
        return folder.stat().st_ino if folder is not None else 0
    except OSError:
        return 0
