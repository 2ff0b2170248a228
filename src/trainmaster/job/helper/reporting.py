"""Reports what is written to the folder of a run: every byte once, while the run executes and after it."""

import hashlib
import os
import time

from . import job_requests
from .connection import PIECE
from .files import PLACED, is_inside, list_files, modification_time, names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO, Callable, Iterable, Iterator, Protocol, Tuple

    from .connection import Header

    # Inode, modification time and size of a file.
    State = Tuple[int, int, int]

    class Send(Protocol):
        def __call__(self, header: "Header", payload: bytes = b"") -> None: ...


# A larger file that keeps changing is sent only when it has not changed for a while.
_LARGE = 64 * 1024 * 1024
_QUIET_SECONDS = 5.0
# A file written to so recently may change again within the same tick of the clock.
_TICK_SECONDS = 0.05
_NOT_REPORTED = ("plan.json", "ranks.json", "spawned.json", "hostfile", "deepspeed_env")


class Reporter(object):
    """Remembers what it has reported, and reports the rest."""

    def __init__(self, send: "Send", listen: "Callable[[], None]", run: str, order: "Header") -> None:
        """`send` sends a frame; `listen` is called between two pieces of a large file."""
        self._send = send
        self._listen = listen
        self._run = run
        self._sizes: "dict[str, int]" = order["sizes"]
        self._is_common: bool = order["common"]  # whether this one reports on what all nodes of the run share
        self._data_folders: "list[str]" = order["back"]
        self._states: "dict[str, State]" = {name: _state(*state) for name, state in order["states"].items()}
        self._digests: "dict[str, tuple[int, Any]]" = {}
        self._stamps: "dict[str, State]" = {}
        self._requests: "set[str]" = set()
        self._work_at = 0.0

    def report(self, folders: "Iterable[str]", small: "Iterable[str]", is_last: bool) -> bool:
        """Reports news in the run's folder and in the `folders` of its nodes, and the files `small`.

        `is_last`: leave nothing for later. Returns whether there was anything.
        """
        folders = list(folders)
        found = self._report_small(small)
        found = self._report_growing(folders, is_last) or found
        found = self._report_requests(folders) or found
        if is_last or time.monotonic() >= self._work_at:
            began = time.monotonic()
            found = self._report_work(is_last) or found
            self._work_at = time.monotonic() + max(1.0, 10 * (time.monotonic() - began))
        return found

    # Small files that are written as a whole: claims, results, records of ranks

    def _report_small(self, paths: "Iterable[str]") -> bool:
        found = False
        for path in paths:
            found = self.report_small_file(path) or found
        return found

    def report_small_file(self, path: str) -> bool:
        """Reports a small file if it has changed since it was last reported."""
        try:
            stamp = _state_of(os.stat(path))
            if self._stamps.get(path) == stamp:
                return False
            with open(path, "rb") as file:
                data = file.read()
        except OSError:
            return False
        self._stamps[path] = stamp
        self._send({"small": os.path.relpath(path, self._run)}, data)
        return True

    # Files that only grow: logs and journals

    def _report_growing(self, folders: "Iterable[str]", is_last: bool) -> bool:
        found = False
        for path in self._growing_files(folders):
            name = os.path.relpath(path, self._run)
            start = self._sizes.get(name, 0)
            try:
                # The size may not show what another machine wrote until the file is opened.
                if not is_last and os.stat(path).st_size <= start:
                    continue
                found = self._send_rest(path, name, start) or found
            except OSError:
                continue
        return found

    def _growing_files(self, folders: "Iterable[str]") -> "Iterator[str]":
        if self._is_common:
            for folder in ("files/azureml-logs", "journals"):
                for name in names(os.path.join(self._run, folder)):
                    path = os.path.join(self._run, folder, name)
                    if not name.startswith(".") and os.path.isfile(path):
                        yield path
        for folder in folders:
            for name in names(folder):
                if name.endswith(".log"):
                    yield os.path.join(folder, name)

    def _send_rest(self, path: str, name: str, start: int) -> bool:
        with open(path, "rb") as file:
            file.seek(start)
            found = False
            while True:
                piece = file.read(PIECE)
                if not piece:
                    return found
                found = True
                self._send({"grown": name, "offset": start}, piece)
                start += len(piece)
                self._sizes[name] = start
                self._listen()

    # Requests of the script to its workspace

    def _report_requests(self, folders: "Iterable[str]") -> bool:
        pending = job_requests.pending(self._run) if self._is_common else []
        new = [name for name in pending if name not in self._requests]
        self._requests = set(pending)
        for name in new:
            text = job_requests.read(self._run, name)
            if text is not None:
                # A request may refer to what was written before it, which has to arrive first.
                self._report_growing(folders, True)
                if job_requests.is_about_files(text):
                    self._report_work(False, at_once=True)
                self._send({"letter": name}, text)
        return bool(new)

    # What the script leaves in its working folder (outputs/ and logs/), and the files that it uploaded to the run

    def _report_work(self, is_last: bool, at_once: bool = False) -> bool:
        found = False
        for path in self._work_files():
            name = os.path.relpath(path, self._run)
            try:
                found = self._report_work_file(path, name, is_last, is_last or at_once) or found
            except OSError:
                # It has just been removed, or is not readable.
                continue
        return found

    def _work_files(self) -> "Iterator[str]":
        if not self._is_common:
            return
        tops = ["code/outputs", "code/logs", "children", job_requests.FILES, *self._uploads(), *self._data_folders]
        for name in tops:
            top = os.path.join(self._run, name)
            # A single file of data was sent in a separate folder.
            since = max(modification_time(top + PLACED), modification_time(os.path.dirname(top) + PLACED))
            for path in list_files(top):
                if os.path.isfile(path) and is_inside(path, self._run):
                    if modification_time(path) > since and _is_complete(path):
                        yield path

    def _uploads(self) -> "Iterator[str]":
        """What the script uploaded; outputs/ and logs/ are links to those of the working folder."""
        for name in names(os.path.join(self._run, "files")):
            if name != "azureml-logs" and not os.path.islink(os.path.join(self._run, "files", name)):
                yield "files/" + name

    def _report_work_file(self, path: str, name: str, is_last: bool, at_once: bool) -> bool:
        with open(path, "rb") as file:
            found = os.fstat(file.fileno())
            state = _state_of(found)
            if self._states.get(name) == state:
                return False
            age = time.time() - found.st_mtime
            if not at_once and found.st_size > _LARGE and age < _QUIET_SECONDS:
                return False
            start = self._length_sent_before(file, name, found.st_size)
            digest = self._digests[name][1] if start else hashlib.sha1()
            file.seek(start)
            self._send_file(file, name, start, found, digest)
        if is_last or age > _TICK_SECONDS:
            self._states[name] = state
            self._send({"state": name, "is": state})
        return True

    def _length_sent_before(self, file: "BinaryIO", name: str, size: int) -> int:
        """The length of what was sent before, if the file still begins with it; else 0."""
        length, digest = self._digests.get(name, (0, None))
        if not length or size < length:
            return 0
        found = hashlib.sha1()
        rest = length
        while rest:
            piece = file.read(min(rest, PIECE))
            if not piece:
                return 0
            found.update(piece)
            rest -= len(piece)
        return length if digest is not None and found.digest() == digest.digest() else 0

    def _send_file(self, file: "BinaryIO", name: str, start: int, found: os.stat_result, digest: "Any") -> None:
        """Sends the bytes from `start` to the size in `found`. What is written in the meantime is sent later."""
        offset, size = start, found.st_size
        while True:
            piece = file.read(min(PIECE, size - offset)) if size > offset else b""
            is_end = offset + len(piece) >= size or not piece
            digest.update(piece)
            mode = found.st_mode & 0o777
            self._send({"work": name, "offset": offset, "start": start, "last": is_end, "mode": mode}, piece)
            offset += len(piece)
            self._listen()
            if is_end:
                self._digests[name] = (offset, digest)
                return


def _state(inode: int, modified: int, size: int) -> "State":
    return (inode, modified, size)


def _state_of(found: os.stat_result) -> "State":
    return _state(found.st_ino, found.st_mtime_ns, found.st_size)


def _is_complete(path: str) -> bool:
    """Whether the file is not still being copied to its place (`job/script/files.py`)."""
    return not os.path.basename(path).startswith(".partial-")


def small_files(folder: str) -> "Iterator[str]":
    """The files of a node that show its state."""
    for name in names(folder):
        if name.endswith(".json") and name not in _NOT_REPORTED:
            yield os.path.join(folder, name)
