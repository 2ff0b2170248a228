"""The files of a datastore that is a folder of the server."""

from __future__ import annotations

import builtins
import os
from pathlib import Path
from urllib.parse import quote

from trainmaster.job.script.storage import Storage, StoredFile
from trainmaster.sdk.backend.remote.connection import RemoteConnection
from trainmaster.sdk.backend.remote.downloads import fetch
from trainmaster.sdk.backend.remote.http import Request, join_path
from trainmaster.sdk.backend.remote.uploads import open_file


class RemoteStorage(Storage):
    """The files of the datastore `name` of a workspace on a server."""

    def __init__(self, connection: RemoteConnection, name: str) -> None:
        self._connection = connection
        self._path = f"{connection.path}/datastores{join_path(name)}/files"

    def list(self, prefix: str) -> builtins.list[StoredFile]:
        """The files at and below `prefix`, sorted."""
        answer = self._connection.client.call("GET", self._path, query={"prefix": prefix})
        return [StoredFile(str(each["name"]), int(each["size"])) for each in answer["files"]]

    def exists(self, path: str) -> bool:
        """Whether there is a file at `path`."""
        request = Request("HEAD", self._file(path))
        return self._connection.client.request(request, accept=lambda status: status == 404).status != 404

    def get(self, path: str, local: str | os.PathLike[str]) -> None:
        """Copies the file at `path` to `local`, which is either complete or absent."""
        fetch(self._connection.client, self._file(path), Path(local))

    def put(self, local: str | os.PathLike[str], path: str) -> None:
        """Copies the file `local` to `path`, and overwrites one that is there."""
        source = Path(local)
        headers = {"Content-Type": "application/octet-stream", "Accept": "application/json"}
        request = Request(
            "PUT", self._file(path), headers=headers, body=lambda: open_file(source), size=source.stat().st_size
        )
        self._connection.client.request(request)

    def _file(self, path: str) -> str:
        return f"{self._path}/{quote(path, safe='/')}"
