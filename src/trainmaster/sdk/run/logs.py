"""The logs of a run: which there are, and reading on in them while they grow and move."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from trainmaster.sdk.growing_text import GrowingText
from trainmaster.sdk.run.masks import mask_of
from trainmaster.shared.folders import RunFolder

Print = Callable[[str], None]

_SYSTEM_LOG = re.compile(r"(?:20|55|60|65|75|80)_.*\.txt|hyperdrive\.txt")
_DRIVER_LOG = re.compile(r"70_driver_log(?:_(\d+))?\.txt")


class RunTexts:
    """The logs of a run by the identity of their files, which they keep when an attempt has failed and they move."""

    def __init__(self, folder: RunFolder) -> None:
        self._mask = partial(mask_of, folder)
        self._found: dict[int, GrowingText] = {}

    def of(self, listed: Callable[[], list[tuple[int, Path]]]) -> list[tuple[int, Path, GrowingText]]:
        """The texts of the logs that are `listed`, each with its rank and its path.

        They are listed again if they moved meanwhile: else the next attempt would be shown before the end of this one.
        """
        while True:
            logs = listed()
            texts = [(rank, path, self._at(path)) for rank, path in logs]
            if logs == listed():
                return [(rank, path, text) for rank, path, text in texts if text is not None]

    def _at(self, path: Path) -> GrowingText | None:
        """The text of the file that is at `path` now; none if it was just moved away."""
        try:
            identity = os.stat(path).st_ino
        except FileNotFoundError:
            return None
        text = self._found.setdefault(identity, GrowingText(path, self._mask, identity))
        text.path = path
        return text


def log_paths(folder: RunFolder) -> list[Path]:
    """All logs by name; those of earlier attempts come before the current one's of the same name."""
    try:
        found = [*folder.logs.iterdir(), *folder.logs.glob("attempt_*/*")]
    except FileNotFoundError:
        return []
    return sorted(found, key=lambda path: (path.name, _attempt(path)))


def rank_logs(folder: RunFolder) -> list[tuple[int, Path]]:
    """What each rank printed in each attempt, the first attempt first."""
    found = ((_DRIVER_LOG.fullmatch(path.name), path) for path in log_paths(folder))
    logs = [(int(match[1] or 0), path) for match, path in found if match]
    return sorted(logs, key=lambda each: (_attempt(each[1]), each[0]))


def driver_logs(folder: RunFolder) -> dict[int, Path]:
    """Where each rank that has begun prints to, lowest first."""
    return dict(sorted(dict(rank_logs(folder)).items()))


def _attempt(path: Path) -> float:
    number = path.parent.name.removeprefix("attempt_")
    return int(number) if number.isdecimal() else float("inf")


class LogReader:
    """Reads on in the logs of a run, in the order of their names: what prepared it, then what rank `rank` printed."""

    def __init__(self, folder: RunFolder, rank: int = 0, headings: bool = True) -> None:
        self.folder = folder
        self._rank = rank
        self._headings = headings
        self._texts = RunTexts(folder)

    def show(self, show: Print) -> None:
        """Shows what is new."""
        for _, path, text in self._texts.of(self._followed):
            for part in self._new_text(path, text):
                show(part)

    def finish(self, show: Print) -> None:
        """Shows what is new at the end."""
        self.show(show)

    def _followed(self) -> list[tuple[int, Path]]:
        return [(self._rank, path) for path in log_paths(self.folder) if self._wanted(path.name)]

    def _wanted(self, name: str) -> bool:
        driver = _DRIVER_LOG.fullmatch(name)
        if driver is not None:
            return int(driver[1] or 0) == self._rank
        return self._headings and _SYSTEM_LOG.fullmatch(name) is not None

    def _new_text(self, path: Path, text: GrowingText) -> Iterator[str]:
        begun = text.begun
        for number, part in enumerate(text.new()):
            if number == 0 and not begun and self._headings:
                heading = f"Streaming azureml-logs/{path.relative_to(self.folder.logs)}"
                yield f"\n{heading}\n{'=' * len(heading)}\n\n"
            yield part
