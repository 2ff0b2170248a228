"""Operations on the files of datastores, for clients that reach a storage only through the dispatcher.

The credentials of a storage never leave the dispatcher. Files in a folder are read and written directly. For any
other storage they pass through a temporary folder of the workspace, and a separate process does the copying.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import shutil
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.credentials import unseal_options
from trainmaster.dispatcher.operation import operation
from trainmaster.dispatcher.pieces import LARGEST_PIECE, read_piece
from trainmaster.dispatcher.processes import run_module
from trainmaster.job.errors import DatastoreException, UserErrorException
from trainmaster.job.helper.safe_names import is_plain
from trainmaster.job.script.store_folder import FolderStorage
from trainmaster.job.script.store_paths import store_path
from trainmaster.shared import linked_folders
from trainmaster.shared.records import DatastoreRecord
from trainmaster.shared.serialization import to_plain
from trainmaster.storage.urls import local_folder

_LONGEST_UPLOAD = 64
_FORGOTTEN_SECONDS = 86400.0


class DatastoreFiles:
    """Operations on the files of datastores."""

    def __init__(self, context: Context) -> None:
        self._context = context

    @operation("datastores.files")
    async def files(self, name: str, prefix: str = "", with_folders: bool = True) -> list[tuple[str, int]]:
        """The path and size of each file at and below `prefix`, sorted.

        Without `with_folders`, a datastore that is a folder is refused, here and in the other operations.
        """
        record, wanted = self._find(name), store_path(prefix)
        folder = _folder_of(record, with_folders)
        if folder is not None:
            return [(each.path, each.size) for each in await asyncio.to_thread(FolderStorage(folder).list, wanted)]
        place = self._make_place(os.urandom(8).hex())
        try:
            await self._run(record, place, list=wanted)
            found: list[tuple[str, int]] = json.loads(await asyncio.to_thread(_listing(place).read_text))
            return found
        finally:
            await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)

    @operation("datastores.read")
    async def read(
        self, name: str, path: str, start: int = 0, size: int = LARGEST_PIECE, with_folders: bool = True
    ) -> dict[str, Any]:
        """A piece of a file: `{"data", "size"}`, base64 and the size of the whole file."""
        record, wanted = self._find(name), store_path(path)
        folder, where = _folder_of(record, with_folders), f"datastore '{name}'"
        if folder is not None:
            return await asyncio.to_thread(read_piece, folder, wanted, start, size, where)
        place = self._make_place(f"read-{sha256(f'{name}/{wanted}'.encode()).hexdigest()[:32]}")
        files = place / "files"
        if start == 0 or not await asyncio.to_thread((files / wanted).is_file):
            await self._run(record, place, prefix=wanted)
        piece = await asyncio.to_thread(read_piece, files, wanted, start, size, where)
        if start + size >= piece["size"]:
            await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)
        return piece

    @operation("datastores.write")
    async def write(
        self, name: str, path: str, upload: str, start: int, data: str, last: bool, with_folders: bool = True
    ) -> None:
        """Writes a piece (base64) of a new file. With the `last` piece the file replaces one with its path.

        All pieces have the same name of the `upload`, which no other has. A piece may be sent again.
        """
        record, wanted = self._find(name), store_path(path)
        if not wanted or not is_plain(upload, _LONGEST_UPLOAD) or start < 0:
            raise UserErrorException("a piece of a file needs a path, the name of its upload, and where it starts")
        try:
            piece = base64.b64decode(data, validate=True)
        except ValueError:
            raise UserErrorException("a piece of a file must be base64") from None
        folder = _folder_of(record, with_folders)
        place = None if folder is not None else self._make_place(f"write-{upload}")
        if place is not None and (place / "done").exists():
            # The answer was lost.
            return
        root = folder if folder is not None else _files_of(place)
        await asyncio.to_thread(_write_piece, root, wanted, f".trainmaster-{upload}.part", start, piece, last, name)
        if last and place is not None:
            await self._run(record, place, target="", overwrite=True)
            (place / "done").touch()
            await asyncio.to_thread(shutil.rmtree, _files_of(place), ignore_errors=True)

    def _find(self, name: str) -> DatastoreRecord:
        found = self._context.store.datastores.get(name)
        if found is None:
            raise DatastoreException(f"there is no datastore '{name[:300]}' in this workspace")
        return found

    async def _run(self, record: DatastoreRecord, place: Path, **what: Any) -> None:
        store = unseal_options(record, self._context.secrets)
        order = {"store": to_plain(store), "files": str(_files_of(place)), **what}
        command = ["trainmaster.storage.storage_request", str(os.getpid())]
        with self._context.activity.working():
            await run_module(command, place / "log.txt", dict(os.environ), json.dumps(order).encode())

    def _make_place(self, name: str) -> Path:
        """A temporary folder. Those that nobody came back to are removed."""
        above = self._context.folder.path / "transfers"
        now = time.time()
        with contextlib.suppress(OSError):
            for old in above.iterdir():
                if now - old.stat().st_mtime > _FORGOTTEN_SECONDS:
                    shutil.rmtree(old, ignore_errors=True)
        (above / name / "files").mkdir(parents=True, exist_ok=True, mode=0o700)
        return above / name


def _folder_of(record: DatastoreRecord, with_folders: bool) -> Path | None:
    folder = local_folder(record.url)
    if folder is not None and not with_folders:
        raise UserErrorException(f"datastore '{record.name}' is a folder, whose files the server reads itself")
    return folder


def _files_of(place: Path | None) -> Path:
    assert place is not None
    return place / "files"


def _listing(place: Path) -> Path:
    return _files_of(place) / "list.json"


def _write_piece(root: Path, path: str, part: str, start: int, piece: bytes, last: bool, name: str) -> None:
    try:
        try:
            linked_folders.write_piece(root, path, part, start, piece)
            if last:
                linked_folders.finish_file(root, path, part, start + len(piece))
        except FileNotFoundError:
            # The last piece may be sent again, because its answer was lost.
            if not last or not _ends_with(root, path, start, piece):
                raise
    except OSError as error:
        raise DatastoreException(
            f"{path[:300]!r} cannot be written to datastore '{name}'", cause=error.strerror or str(error)
        ) from None


def _ends_with(root: Path, path: str, start: int, piece: bytes) -> bool:
    with linked_folders.open_file(root, path) as file:
        file.seek(start)
        return file.read() == piece
