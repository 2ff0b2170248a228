"""The files of a run on a server."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from trainmaster.job.errors import UserErrorException
from trainmaster.job.script.files import file_name, is_stream
from trainmaster.job.script.journal import Journal
from trainmaster.sdk.backend.backend import LogFile, LogPart
from trainmaster.sdk.backend.remote.answers import UnavailableException
from trainmaster.sdk.backend.remote.connection import RemoteConnection
from trainmaster.sdk.backend.remote.downloads import fetch, read_part
from trainmaster.sdk.backend.remote.http import Request, join_path
from trainmaster.sdk.backend.remote.mirror import Copy
from trainmaster.sdk.backend.remote.spool import Spool
from trainmaster.sdk.backend.remote.uploads import file_path, put_file
from trainmaster.shared.attempts import FailedAttempt
from trainmaster.shared.private import open_private
from trainmaster.shared.serialization import from_plain


class RemoteRunFiles:
    """The files of one run."""

    def __init__(self, connection: RemoteConnection, spool: Spool, run_id: str, page: str) -> None:
        self._connection = connection
        self._spool = spool
        self._run_id = run_id
        self._page = page

    @property
    def run_id(self) -> str:
        """The run they belong to."""
        return self._run_id

    # Listing

    def names(self) -> list[str]:
        """The names of all files, sorted."""
        return [name for name, _ in self.entries()]

    def entries(self, left: bool = False) -> list[tuple[str, int]]:
        """Name and size of all files; with `left` of those that the script left in its working folder."""
        answer = self._get(self._path("files"), {"left": "true"} if left else {})
        return [(str(each["name"]), int(each["size"])) for each in answer["files"]]

    def list_left_names(self) -> list[str]:
        """Files that the script left outside of outputs/ and logs/, sorted."""
        return [name for name, _ in self.entries(left=True)]

    def has(self, name: str) -> bool:
        """Whether there is a file `name`."""
        return self._size(name) is not None

    def sizes(self, names: Sequence[str]) -> list[tuple[str, int]]:
        """Name and size of each of these files that still exists."""
        known = dict(self.entries())
        found = [(name, known.get(name) if name in known else self._size(name)) for name in names]
        return [(name, size) for name, size in found if size is not None]

    def _size(self, name: str) -> int | None:
        request = Request("HEAD", self._file(name))
        answer = self._connection.client.request(request, accept=lambda status: status == 404)
        return None if answer.status == 404 else int(answer.headers.get("content-length", "0"))

    # Reading

    def read(self, name: str, start: int = 0, size: int | None = None) -> bytes:
        """The contents of a file, or a part of it."""
        return read_part(self._connection.client, self._file(name), start, size)

    def copy(self, name: str, target: Path) -> None:
        """Copies one file to the path `target`, whose folder is created."""
        fetch(self._connection.client, self._file(name), target)

    def logs(self) -> list[LogFile]:
        """All logs by name; of logs with the same name, those of earlier attempts come first."""
        answer = self._get(self._path("logs"))
        found = [LogFile(str(each["name"]), str(each["identity"]), int(each["size"])) for each in answer["logs"]]
        return sorted(found, key=lambda log: log.place)

    def read_log(self, name: str, identity: str, start: int) -> LogPart:
        """Reads a log from an offset on, a limited amount at a time. Nothing if `name` is not this log any more."""
        path = f"{self._path('logs')}/{quote(name, safe='/')}"
        request = Request("GET", path, {"identity": identity, "start": start})
        answer = self._connection.client.request(request, accept=lambda status: status in (404, 409))
        if answer.status >= 400 or answer.headers.get("x-identity", identity) != identity:
            return LogPart(b"", start)
        return LogPart(answer.body, int(answer.headers.get("x-next-offset", start + len(answer.body))))

    def mirror(self, name: str, target: Path) -> Copy:
        """A copy of the folder, which `update` brings up to date."""
        return Copy(self, name, target)

    # Adding

    def add(self, name: str, source: Any) -> str:
        """Keeps a file or the contents of a stream as `name`; returns its plain form."""
        name = file_name(name)
        try:
            patience = self._spool.patience(self._run_id)
            return put_file(self._connection, self._run_id, name, source, patience=patience)
        except UnavailableException:
            # What a program on a laptop produces without a network is sent later, as what it logs.
            if is_stream(source) or not self._spool.keep_file(self._run_id, name, source):
                raise
            return name

    def add_beside(self, name: str, source: Any) -> str:
        """Like `add`, but uses the next free name if the name exists."""
        return put_file(self._connection, self._run_id, file_name(name), source, beside=True)

    def flush(self, names: Iterable[str]) -> None:
        """Nothing: the server answers when a file is on its disk."""

    def flush_all(self) -> None:
        """Nothing: the server answers when a file is on its disk."""

    def open_text(self, name: str) -> IO[str]:
        """A text file of the run, to which is appended. It is sent while it grows."""
        path = self._spool.text_path(self._run_id, file_name(name))
        return open(path, "a", encoding="utf-8", errors="backslashreplace", opener=open_private)

    def open_journal(self, writer: str) -> Journal:
        """The journal of one writer, on this machine's disk."""
        return self._spool.open_journal(self._run_id, writer)

    # What is known about the run by its files

    def read_failed_attempts(self) -> list[FailedAttempt]:
        """The attempts before the current one, oldest first."""
        found = self._connection.call("runs.failed_attempts", run_id=self._run_id)
        return [from_plain(FailedAttempt, each) for each in found]

    def read_environment_lock(self) -> str | None:
        """The packages of the run's environment; None if it was not built."""
        lock: str | None = self._connection.call("runs.environment_lock", run_id=self._run_id)
        return lock

    def address(self, name: str = "") -> str:
        """The address of a file; without a name that of the run."""
        if not name:
            return self._page
        return f"{self._connection.client.address}{self._file(name)}"

    @property
    def location(self) -> str:
        """The address of the run."""
        return self._page

    def _path(self, what: str) -> str:
        return f"{self._connection.path}/runs{join_path(self._run_id)}/{what}"

    def _file(self, name: str) -> str:
        if not name.strip("/."):
            raise UserErrorException(f"run {self._run_id} has no file {name!r}")
        return file_path(self._connection, self._run_id, name)

    def _get(self, path: str, query: dict[str, str] | None = None) -> Any:
        return self._connection.client.call("GET", path, query=query or {})
