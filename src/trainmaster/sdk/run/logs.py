"""The logs of a run: listing them, and reading them while they grow and move."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from trainmaster.sdk.backend.local.masks import mask_of
from trainmaster.sdk.growing_text import GrowingText
from trainmaster.shared.folders import RunFolder

Print = Callable[[str], None]

_SYSTEM_LOG = re.compile(r"(?:20|55|60|65|75|80)_.*\.txt|hyperdrive\.txt")
_DRIVER_LOG = re.compile(r"70_driver_log(?:_(\d+))?\.txt")


class RunTexts:
    """The texts of a run's logs, by the inodes of the files, which stay when a failed attempt's logs are moved."""

    def __init__(self, folder: RunFolder) -> None:
        self._mask = partial(mask_of, folder)
        self._found: dict[int, GrowingText] = {}

    def find(self, list_logs: Callable[[], list[tuple[int, Path]]]) -> list[tuple[int, Path, GrowingText]]:
        """The texts of the logs that `list_logs` returns, each with its rank and its path.

        They are listed again if they moved meanwhile. Otherwise the next attempt could be shown before the end of this
        one.
        """
        while True:
            logs = list_logs()
            texts = [(rank, path, self._open(path)) for rank, path in logs]
            if logs == list_logs():
                return [(rank, path, text) for rank, path, text in texts if text is not None]

    def _open(self, path: Path) -> GrowingText | None:
        """The text of the file that is at `path` now; None if it was just moved away."""
        try:
            identity = os.stat(path).st_ino
        except FileNotFoundError:
            return None
        text = self._found.setdefault(identity, GrowingText(path, self._mask, identity))
        text.path = path
        return text


def log_paths(folder: RunFolder) -> list[Path]:
    """All logs by name. Of logs with the same name, those of earlier attempts come first."""
    try:
        found = [*folder.logs.iterdir(), *folder.logs.glob("attempt_*/*")]
    except FileNotFoundError:
        return []
    return sorted(found, key=lambda path: (path.name, _attempt(path)))


def rank_logs(folder: RunFolder) -> list[tuple[int, Path]]:
    """The rank and the path of every log of a rank, the first attempt first."""
    found = ((_DRIVER_LOG.fullmatch(path.name), path) for path in log_paths(folder))
    logs = [(int(match[1] or 0), path) for match, path in found if match]
    return sorted(logs, key=lambda each: (_attempt(each[1]), each[0]))


def driver_logs(folder: RunFolder) -> dict[int, Path]:
    """The current log of each rank that has started, lowest rank first."""
    return dict(sorted(dict(rank_logs(folder)).items()))


def _attempt(path: Path) -> float:
    number = path.parent.name.removeprefix("attempt_")
    return int(number) if number.isdecimal() else float("inf")


class LogReader:
    """Reads what is added to the logs of a run, in the order of their names: the preparation, then rank `rank`."""

    def __init__(self, folder: RunFolder, rank: int = 0, headings: bool = True) -> None:
        self.folder = folder
        self._rank = rank
        self._headings = headings
        self._texts = RunTexts(folder)

    def show(self, show: Print) -> None:
        """Shows what is new."""
        for _, path, text in self._texts.find(self._list_followed):
            for part in self._new_text(path, text):
                show(part)

    def finish(self, show: Print) -> None:
        """Shows what is new at the end."""
        self.show(show)

    def _list_followed(self) -> list[tuple[int, Path]]:
        return [(self._rank, path) for path in log_paths(self.folder) if self._is_wanted(path.name)]

    def _is_wanted(self, name: str) -> bool:
        driver = _DRIVER_LOG.fullmatch(name)
        if driver is not None:
            return int(driver[1] or 0) == self._rank
        return self._headings and _SYSTEM_LOG.fullmatch(name) is not None

    def _new_text(self, path: Path, text: GrowingText) -> Iterator[str]:
        has_begun = text.has_begun
        for number, part in enumerate(text.read_new()):
            if number == 0 and not has_begun and self._headings:
                heading = f"Streaming azureml-logs/{path.relative_to(self.folder.logs)}"
                yield f"\n{heading}\n{'=' * len(heading)}\n\n"
            yield part
