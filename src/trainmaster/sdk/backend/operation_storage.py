"""Datastores and packages whose files are listed and copied by operations of the dispatcher.

They are for programs that do not reach the files themselves. The credentials of a storage stay with the dispatcher.
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
        _fetch(self._connection, "datastores.read", self._name, path, local)

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


class OperationPackage:
    """The files of the package `name`, through `connection`."""

    def __init__(self, connection: Connection, name: str) -> None:
        self._connection = connection
        self._name = name

    def list_all(self) -> builtins.list[tuple[StoredFile, bool]]:
        """All files, and whether each is executable."""
        found = self._connection.call("packages.files", name=self._name)
        return [(StoredFile(path, size), is_executable) for path, size, is_executable in found]

    def get(self, path: str, local: str | os.PathLike[str]) -> None:
        """Copies the file at `path` to `local`."""
        _fetch(self._connection, "packages.read", self._name, path, local)

    def local_path(self) -> str | None:
        """Nothing: the folder is on another machine."""
        return None


def _fetch(connection: Connection, op: str, name: str, path: str, local: str | os.PathLike[str]) -> None:
    """Copies a file in pieces. `local` is either complete or absent."""
    try:
        with open_part(local) as part, open(part, "xb") as file:
            whole = None
            while whole is None or file.tell() < whole:
                piece = connection.call(op, name=name, path=path, start=file.tell(), size=_PIECE)
                whole = int(piece["size"])
                data = base64.b64decode(piece["data"])
                if not data and file.tell() < whole:
                    raise DatastoreException(f"{path!r} became shorter while it was read")
                file.write(data)
    except OSError as error:
        raise DatastoreException(f"{local} cannot be written", cause=error.strerror or str(error)) from error
