"""What a copy says while it goes on: a line per file for few files, a line now and then for many."""

from __future__ import annotations

import threading
from collections.abc import Callable

from trainmaster.storage.paths import shown

Say = Callable[[str], None]

_FEW = 20


def say_nothing(line: str) -> None:
    """For show_progress=False."""


def say_aloud(line: str) -> None:
    """For show_progress=True: to standard output, at once even into a file."""
    print(line, flush=True)


class Progress:
    """Counts the files of one copy and says so; usable from several threads."""

    def __init__(self, say: Say, verb: str, total: int) -> None:
        self._say = say
        self._verb = verb
        self._total = total
        self._lock = threading.Lock()
        self._tenths = 0
        self.copied = 0
        self.skipped = 0
        self._bytes = 0

    def copied_file(self, path: str, size: int) -> None:
        """A file is complete."""
        with self._lock:
            self.copied += 1
            self._bytes += size
            self._after(f"{self._verb} {shown(path)} ({_size(size)})")

    def skipped_file(self, path: str) -> None:
        """A file is there already and stays as it is."""
        with self._lock:
            self.skipped += 1
            self._after(f"Skipped {shown(path)}: it is there already (overwrite=False)")

    def finish(self, where: str) -> None:
        """Say what was done in all."""
        skipped = f", skipped {_files(self.skipped)} already there" if self.skipped else ""
        self._say(f"{self._verb} {_files(self.copied)} ({_size(self._bytes)}) {where}{skipped}")

    def _after(self, line: str) -> None:
        done = self.copied + self.skipped
        if self._total <= _FEW:
            self._say(line)
        elif done < self._total and done * 10 // self._total > self._tenths:
            self._tenths = done * 10 // self._total
            self._say(f"{done} of {_files(self._total)} done")


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"


def _size(count: float) -> str:
    for unit in ("bytes", "KB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
