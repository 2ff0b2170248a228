"""A datastore whose files are listed and copied by operations of the dispatcher.

It is for programs that do not reach the storage themselves. The credentials stay with the dispatcher.
"""

from __future__ import annotations

import base64
import builtins
import os
import uuid
from typing import TYPE_CHECKING

from trainmaster.job.errors import DatastoreException
from trainmaster.job.script.storage import Storage, StoredFile
from trainmaster.job.script.store_folder import open_part

if TYPE_CHECKING:
    from trainmaster.sdk.backend.backend import Connection

_PIECE = 4 << 20


class OperationStorage(Storage):
    """The files of the datastore `name`, through `connection`."""

    def __init__(self, connection: Connection, name: str) -> None:
        self._connection = connection
        self._name = name

    def list(self, prefix: str) -> builtins.list[StoredFile]:
        """The files at and below `prefix`, sorted."""
        found = self._connection.call("datastores.files", name=self._name, prefix=prefix)
        return [StoredFile(path, size) for path, size in found]

    def exists(self, path: str) -> bool:
        """Whether there is a file at `path`."""
        return any(file.path == path for file in self.list(path))

    def get(self, path: str, local: str | os.PathLike[str]) -> None:
        """Copies the file at `path` to `local`, which is either complete or absent."""
        try:
            with open_part(local) as part, open(part, "xb") as file:
                whole = None
                while whole is None or file.tell() < whole:
                    piece = self._read(path, file.tell())
                    whole = int(piece["size"])
                    data = base64.b64decode(piece["data"])
                    if not data and file.tell() < whole:
                        raise DatastoreException(f"{path!r} became shorter while it was read")
                    file.write(data)
        except OSError as error:
            raise DatastoreException(f"{local} cannot be written", cause=error.strerror or str(error)) from error

    def _read(self, path: str, start: int) -> dict[str, str]:
        found: dict[str, str] = self._connection.call(
            "datastores.read", name=self._name, path=path, start=start, size=_PIECE
        )
        return found

    def put(self, local: str | os.PathLike[str], path: str) -> None:
        """Copies the file `local` to `path`, and overwrites one that is there."""
        upload, start = uuid.uuid4().hex, 0
        try:
            with open(local, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                while True:
                    data = file.read(_PIECE)
                    last = len(data) < _PIECE or start + len(data) >= size
                    self._connection.call(
                        "datastores.write",
                        name=self._name,
                        path=path,
                        upload=upload,
                        start=start,
                        data=base64.b64encode(data).decode(),
                        last=last,
                    )
                    start += len(data)
                    if last:
                        return
        except OSError as error:
            raise DatastoreException(f"{local} cannot be read", cause=error.strerror or str(error)) from error
