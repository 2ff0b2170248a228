"""azureml-logs/hyperdrive.txt: what a sweep did and why, for users."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from trainmaster.shared.private import open_private

_STAMP = "%Y-%m-%d %H:%M:%S "
_STAMP_LENGTH = 20


class SweepLog:
    """Appends lines that start with the time (UTC)."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._file: TextIO = open(path, "a", buffering=1, encoding="utf-8", opener=open_private)  # noqa: SIM115

    def say(self, line: str) -> None:
        """Appends a line."""
        self._file.write(f"{time.strftime(_STAMP, time.gmtime())}{line}\n")

    def say_what_is_missing(self, lines: Iterable[str]) -> None:
        """Appends those lines that an earlier dispatcher did not write before it was killed."""
        text = self._path.read_text(encoding="utf-8", errors="replace")
        if text and not text.endswith("\n"):
            self._file.write("\n")
        there = {line[_STAMP_LENGTH:] for line in text.splitlines()}
        for line in lines:
            if line not in there:
                self.say(line)

    def close(self) -> None:
        """Closes the file."""
        self._file.close()
