"""Sends the spool of one run to its server. Every step may be repeated, also by two programs at once.

The server appends to a journal only at its end, so bytes that it has already are not added twice.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from trainmaster.job.errors import ServiceException
from trainmaster.sdk.backend.remote.answers import error_of
from trainmaster.sdk.backend.remote.connection import RemoteConnection
from trainmaster.sdk.backend.remote.http import Request, join_path
from trainmaster.sdk.backend.remote.spool_folder import SpoolFolder

_PART = 1 << 20
# A laptop whose network is gone notices it within this time. The program itself does not wait for it.
_SILENCE_SECONDS = 20.0


class Delivery:
    """Sends what is new of one run. It remembers what the server has."""

    def __init__(self, connection: RemoteConnection, folder: SpoolFolder) -> None:
        self._connection = connection
        self.folder = folder
        self._sent: dict[Path, int] = {}

    @property
    def pending(self) -> int:
        """How many bytes the server does not have, as far as this program knows."""
        return sum(max(0, _size(path) - self._sent.get(path, 0)) for path, _ in self._list_all())

    def _list_all(self) -> Iterator[tuple[Path, str]]:
        """The files of the spool, and where each is appended on the server."""
        run = f"{self._connection.path}/runs{join_path(self.folder.run_id)}"
        for path in self.folder.list_journals():
            yield path, f"{run}/journals{join_path(path.name.removesuffix('.jsonl'))}"
        for name, path in self.folder.list_texts():
            yield path, f"{run}/files/{quote(name, safe='/')}"

    def send_new(self) -> None:
        """Sends what was logged since the last time. Raises if the server cannot be reached or refuses it."""
        for path, address in self._list_all():
            if path not in self._sent:
                # What an earlier program sent of it is not known here. The server knows, and tells.
                self._sent[path] = 0
                if not _size(path):
                    # A text that is empty is a file of the run too.
                    self._append(address, 0, b"")
            self._send_file(path, address)

    def _send_file(self, path: Path, address: str) -> None:
        while (sent := self._sent[path]) < _size(path):
            with open(path, "rb") as file:
                file.seek(sent)
                data = file.read(_PART)
            self._sent[path] = size = self._append(address, sent, data)
            # Less: the server's machine lost its last bytes in a power cut. They are sent again.
            if size == sent:
                raise ServiceException(f"the server does not keep what is logged to run {self.folder.run_id}")

    def _append(self, address: str, offset: int, data: bytes) -> int:
        """The size of the file on the server afterwards."""
        headers = {"Content-Type": "application/octet-stream", "Accept": "application/json"}
        request = Request("PUT", address, {"offset": offset}, headers, data, seconds=_SILENCE_SECONDS, patience=0.0)
        # A conflict with a size says how much the server has: it is behind where we thought.
        answer = self._connection.client.request(request, accept=lambda status: status == 409)
        found = answer.json()
        size = found.get("size", found.get("error", {}).get("size"))
        if not isinstance(size, int):
            raise error_of(answer.status, answer.headers, answer.body)
        return size

    def send_finish(self) -> None:
        """Tells the server how the run ended, if it has to be told."""
        finish = self.folder.read_finish()
        if finish is not None:
            self._connection.send("runs.finish", finish.args, finish.key)
            self.folder.drop_finish()


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
