"""The journal of one writer: a file of JSON lines that only grows (docs/reference/on-disk.md, 'Journal').

When `write` returns, the kernel has the record: killing every process of the run does not lose it.
"""

import os
from _thread import RLock
from errno import EBADF
from os import getpid, write

from trainmaster.job.errors import TrainmasterError, UserErrorException

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Mapping

# The reader of journals skips longer lines; a value of this size belongs in a file.
LONGEST_RECORD = 16 * 1024 * 1024

# Ends a line that was written in part. With it the line is not JSON, even if only its line end was missing.
_TORN_END = b"#\n"
_MOST_SHORT_WRITES = 8

# Asking for the process id is a system call, a tenth of the cost of logging. Python 3.7 and up report a fork.
_REPORTS_FORKS = hasattr(os, "register_at_fork")
_process = getpid()


def _note_fork() -> None:
    global _process
    _process = getpid()


if _REPORTS_FORKS:
    os.register_at_fork(after_in_child=_note_fork)


def process_id() -> int:
    """The id of this process, also after a fork."""
    return _process if _REPORTS_FORKS else getpid()


class Journal:
    """Appends records to the file at `path`; usable from all threads, from signal handlers, and after a fork.

    >>> Journal("journal.jsonl").append({"k": "metric", "n": "loss", "v": 0.5, "t": 1.0})  # doctest: +SKIP
    """

    def __init__(self, path: "str | os.PathLike[str]") -> None:
        self._name_file: "Callable[[], str]" = lambda: os.fspath(path)
        self._handles: "dict[int, _Handle]" = {}

    @classmethod
    def create_in(cls, folder: str, rank: object = "0") -> "Journal":
        """A journal in `folder` with one file per process that writes, forked ones included."""
        journal = cls(folder)
        label = "".join(c for c in str(rank) if c.isalnum()) or "0"
        journal._name_file = lambda: os.path.join(folder, "{}-{}-{}.jsonl".format(label, getpid(), os.urandom(4).hex()))
        return journal

    def append(self, record: "Mapping[str, Any]") -> None:
        """Appends one record (a dict that JSON can express); returns when the record is safe."""
        import json

        self.write((json.dumps(record, separators=(",", ":")) + "\n").encode("ascii"))

    def write(self, line: bytes) -> None:
        """Appends one complete line of bytes, with its line end; returns when the line is safe."""
        # By process id, so that a forked process does not use the file or the (possibly held) lock of its parent.
        handle = self._handles.get(_process if _REPORTS_FORKS else getpid())
        if handle is None:
            handle = self._handles.setdefault(process_id(), _Handle(self._name_file()))
        size = len(line)
        if size > LONGEST_RECORD:
            raise UserErrorException(
                "the value was not kept: it is larger than {} MB".format(LONGEST_RECORD // 2**20),
                hint="Log a smaller value, or upload it as a file with run.upload_file().",
            )
        with handle.lock:
            # Set before the write, so that a signal handler that logs during it starts on a new line.
            torn, handle.torn = handle.torn, True
            try:
                if torn or handle.fd < 0 or write(handle.fd, line) != size:
                    handle.write_with_care(line)
            except OSError as error:
                handle.recover(line, error)
            handle.torn = False

    def close(self) -> None:
        """Closes this process's file; a later write opens it again."""
        handle = self._handles.get(process_id())
        if handle is not None:
            with handle.lock:
                fd, handle.fd = handle.fd, -1
                if fd >= 0:
                    os.close(fd)

    def records(self) -> "list[dict[str, Any]]":
        """The records that this process wrote so far, oldest first."""
        handle = self._handles.get(process_id())
        if handle is None:
            return []
        return read_records(handle.path)


class _Handle:
    """The open file of one process. If `torn`, the last line in the file may lack its end."""

    __slots__ = ("fd", "lock", "path", "torn")

    def __init__(self, path: str) -> None:
        self.path = path
        # Reentrant, because a signal handler may log while the thread it interrupts is logging.
        self.lock = RLock()
        self.fd = -1
        self.torn = False

    def open(self) -> None:
        os.makedirs(os.path.dirname(self.path) or ".", exist_ok=True)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self.fd = os.open(self.path, flags, 0o600)
        # A file that an earlier process began may end in the middle of a line.
        size = os.fstat(self.fd).st_size
        self.torn = size > 0 and os.pread(self.fd, 1, size - 1) != b"\n"

    def write_with_care(self, line: bytes) -> None:
        """Writes the line on a new line, after a plain write was not possible or wrote only a part."""
        start = _TORN_END
        if self.fd < 0:
            self.open()
            start = _TORN_END if self.torn else b""
            self.torn = True
        for _ in range(_MOST_SHORT_WRITES):
            if write(self.fd, start + line) == len(start) + len(line):
                return
            start = _TORN_END
        raise OSError("the file system wrote only a part of the line, {} times".format(_MOST_SHORT_WRITES))

    def recover(self, line: bytes, error: "OSError") -> None:
        """Tries once more if the script closed our file (daemons close all files); otherwise raises the error."""
        if error.errno == EBADF:
            try:
                self.fd = -1
                self.write_with_care(line)
                return
            except OSError as second:
                error = second
        raise TrainmasterError(
            "the value was NOT kept: the run's journal cannot be written",
            inner_exception=error,
            cause="{}: {}".format(self.path, error.strerror or error),
            hint="Free space or repair the folder, then log the value again; what was logged before is safe.",
        ) from error


def read_records(path: str) -> "list[dict[str, Any]]":
    """The complete records in the journal at `path`; torn lines are skipped."""
    import json

    try:
        with open(path, "rb") as file:
            lines = file.read().split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    records = []
    for line in lines:
        try:
            record = json.loads(line.decode("ascii"))
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            records.append(record)
    return records
