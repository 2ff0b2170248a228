"""What a copy prints: a line per file for a few files, a line for every tenth of many."""

import sys
import threading

from trainmaster.job.script.store_paths import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

    Say = Callable[[str], None]

_FEW = 20


def say_nothing(line: str) -> None:
    """For show_progress=False."""


def say_aloud(line: str) -> None:
    """For show_progress=True: prints to standard output, and flushes it, because it may be a file."""
    print(line)
    sys.stdout.flush()


class Progress:
    """Counts the files of one copy and prints lines; may be used by several threads."""

    def __init__(self, say: "Say", verb: str, total: int) -> None:
        self._say = say
        self._verb = verb
        self._total = total
        self._lock = threading.Lock()
        self._tenths = 0
        self.copied = 0
        self.skipped = 0
        self._bytes = 0

    def count_copied(self, path: str, size: int) -> None:
        """A file is complete."""
        with self._lock:
            self.copied += 1
            self._bytes += size
            self._say_line("{} {} ({})".format(self._verb, printable(path), _size(size)))

    def count_skipped(self, path: str) -> None:
        """A file already exists and stays as it is."""
        with self._lock:
            self.skipped += 1
            self._say_line("Skipped {}: it already exists (overwrite=False)".format(printable(path)))

    def finish(self, where: str) -> None:
        """Prints the sum."""
        skipped = ", skipped {} that already existed".format(_files(self.skipped)) if self.skipped else ""
        self._say("{} {} ({}) {}{}".format(self._verb, _files(self.copied), _size(self._bytes), where, skipped))

    def _say_line(self, line: str) -> None:
        done = self.copied + self.skipped
        if self._total <= _FEW:
            self._say(line)
        elif done < self._total and done * 10 // self._total > self._tenths:
            self._tenths = done * 10 // self._total
            self._say("{} of {} done".format(done, _files(self._total)))


def _files(count: int) -> str:
    return "1 file" if count == 1 else "{} files".format(count)


def _size(count: float) -> str:
    for unit in ("bytes", "KB", "MB", "GB"):
        if count < 1000:
            return "{:.0f} {}".format(count, unit) if unit == "bytes" else "{:.1f} {}".format(count, unit)
        count /= 1000
    return "{:.1f} TB".format(count)
