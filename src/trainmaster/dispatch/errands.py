"""What jobs ask about datastores: which there are, and to copy between one of them and a folder of the run's."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmaster.datastores.datastore import Datastore
from trainmaster.datastores.storage import local_folder, shown_url
from trainmaster.dispatch.credentials import opened
from trainmaster.dispatch.processes import run_module
from trainmaster.errors import DatastoreException, UserErrorException
from trainmaster.plain import to_plain
from trainmaster.records import DatastoreRecord

if TYPE_CHECKING:
    from trainmaster.dispatch.yard import Yard

_TOKEN = re.compile(r"\w[\w-]*")


class Errands:
    """The operations of jobs on datastores; scripts on other machines may only ask which there are."""

    def __init__(self, yard: Yard) -> None:
        self._yard = yard

    @property
    def operations(self) -> dict[str, Callable[..., Any]]:
        """By their names."""
        return {
            "datastores.describe": self.describe,
            "datastores.fetch": self.fetch,
            "datastores.send": self.send,
        }

    def describe(self) -> list[dict[str, Any]]:
        """All datastores by name, as a job may know them: without their options, which hold keys."""
        return [_described(self._opened(store)) for store in self._yard.store.list_datastores()]

    async def fetch(self, store: str, prefix: str, run_id: str, token: str) -> str:
        """Copies what the store has at `prefix` into the folder of an errand; what was said about it."""
        return await self._go(store, run_id, token, prefix=prefix)

    async def send(self, store: str, target: str, overwrite: bool, run_id: str, token: str) -> str:
        """Copies what lies in the folder of an errand to `target` of the store; what was said about it."""
        return await self._go(store, run_id, token, target=target, overwrite=overwrite)

    async def _go(self, name: str, run_id: str, token: str, **what: Any) -> str:
        record = self._yard.store.get_datastore(name)
        if record is None:
            raise DatastoreException(f"there is no datastore '{name[:300]}' in this workspace")
        folder = self._folder(run_id, token)
        order = {"store": to_plain(self._opened(record)), "files": str(folder / "files"), **what}
        log = folder / "log.txt"
        # A process of its own, so that no storage driver is ever loaded into the dispatcher; keys go through a pipe.
        command = ["trainmaster.datastores.errand", str(os.getpid())]
        await run_module(command, log, dict(os.environ), json.dumps(order).encode())
        return (await asyncio.to_thread(log.read_text, "utf-8")).rstrip("\n")

    def _folder(self, run_id: str, token: str) -> Path:
        """What the job made for an errand, below its run's folder."""
        if _TOKEN.fullmatch(run_id) and _TOKEN.fullmatch(token):
            folder = self._yard.folder.run(run_id).path / "errands" / token
            if folder.is_dir():
                return folder
        raise UserErrorException(f"there is no errand {token[:60]!r} of a run {run_id[:60]!r}")

    def _opened(self, record: DatastoreRecord) -> DatastoreRecord:
        return opened(record, self._yard.secrets)


def _described(record: DatastoreRecord) -> dict[str, Any]:
    store = Datastore.of_record(_Nobody(), record)
    folder = local_folder(record.url)
    return {
        "name": record.name,
        "is_default": record.is_default,
        "url": shown_url(record.url),
        "folder": None if folder is None else str(folder),
        "inode": _inode(folder),
        "datastore_type": store.datastore_type,
        "account_name": store.account_name,
        "container_name": store.container_name,
    }


def _inode(folder: Path | None) -> int:
    """By this a job knows a folder that it sees as the same; 0 where there is none."""
    try:
        return folder.stat().st_ino if folder is not None else 0
    except OSError:
        return 0


class _Nobody:
    """The workspace of a datastore that is only looked at."""

    name = ""

    def _call(self, op: str, **args: Any) -> Any:
        raise AssertionError(op)
