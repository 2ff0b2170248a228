"""The journal of one writer: a file of JSON lines that only grows (docs/reference/on-disk.md, 'Journal').

What `write` returned from is in the kernel's hands: killing every process of the run does not lose it.
"""

import os
from _thread import RLock
from errno import EBADF
from os import getpid, write

from trainmaster.job.errors import TrainmasterError, UserErrorException

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Mapping

# The reader of journals gives up on endless lines; a record of this size is a file, not a metric.
LONGEST_RECORD = 16 * 1024 * 1024

# Ends a line that was written in part: with it the line is no JSON, even if only its line end was missing.
_TORN_END = b"#\n"
_SHORT_WRITES_BORNE = 8

# Asking for the process id is a system call, a tenth of what logging costs: Python 3.7 and up say when they fork.
_FORKS_ARE_TOLD = hasattr(os, "register_at_fork")
_process = getpid()


def _after_fork() -> None:
    global _process
    _process = getpid()


if _FORKS_ARE_TOLD:
    os.register_at_fork(after_in_child=_after_fork)


def process_id() -> int:
    """The id of this process, also after a fork."""
    return _process if _FORKS_ARE_TOLD else getpid()


class Journal:
    """Appends records to the file at `path`; usable from all threads, from signal handlers, and after a fork.

    >>> Journal("journal.jsonl").append({"k": "metric", "n": "loss", "v": 0.5, "t": 1.0})  # doctest: +SKIP
    """

    def __init__(self, path: "str | os.PathLike[str]") -> None:
        self._name_file: "Callable[[], str]" = lambda: os.fspath(path)
        self._handles: "dict[int, _Handle]" = {}

    @classmethod
    def in_folder(cls, folder: str, rank: object = "0") -> "Journal":
        """A journal in `folder` with a file of its own for each process that writes, forked ones too."""
        journal = cls(folder)
        label = "".join(c for c in str(rank) if c.isalnum()) or "0"
        journal._name_file = lambda: os.path.join(folder, "{}-{}-{}.jsonl".format(label, getpid(), os.urandom(4).hex()))
        return journal

    def append(self, record: "Mapping[str, Any]") -> None:
        """Keeps one record (a dict that JSON can express); returns when it is safe."""
        import json

        self.write((json.dumps(record, separators=(",", ":")) + "\n").encode("ascii"))

    def write(self, line: bytes) -> None:
        """Keeps one complete line of bytes, its line end included; returns when it is safe."""
        # By process id, so that a forked process finds no file and no (possibly held) lock of its parent's.
        handle = self._handles.get(_process if _FORKS_ARE_TOLD else getpid())
        if handle is None:
            handle = self._handles.setdefault(process_id(), _Handle(self._name_file()))
        size = len(line)
        if size > LONGEST_RECORD:
            raise UserErrorException(
                "the value was not kept: it is larger than {} MB".format(LONGEST_RECORD // 2**20),
                hint="Log a smaller value, or upload it as a file with run.upload_file().",
            )
        with handle.lock:
            # Set before the write: a signal handler that logs in the middle of one starts on a new line then.
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
        """What this process wrote so far, oldest first."""
        handle = self._handles.get(process_id())
        if handle is None:
            return []
        return read_records(handle.path)


class _Handle:
    """The open file of one process. `torn` says that the last line in the file may lack its end."""

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
        """The whole line on a line of its own, where the plain write was not possible or fell short."""
        start = _TORN_END
        if self.fd < 0:
            self.open()
            start = _TORN_END if self.torn else b""
            self.torn = True
        for _ in range(_SHORT_WRITES_BORNE):
            if write(self.fd, start + line) == len(start) + len(line):
                return
            start = _TORN_END
        raise OSError("the file system took only part of the line, {} times".format(_SHORT_WRITES_BORNE))

    def recover(self, line: bytes, error: "OSError") -> None:
        """One more try where the script closed our file (daemons close all); else the error."""
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
    """The complete records in the journal at `path`; torn lines are passed over."""
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
