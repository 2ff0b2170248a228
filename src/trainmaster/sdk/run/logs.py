"""The logs of a run: choosing them, and reading them while they grow and move."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from trainmaster.job.agent.tail import READ, last_lines

if TYPE_CHECKING:
    from trainmaster.sdk.backend.backend import LogFile, RunFiles

Print = Callable[[str], None]

_SYSTEM_LOG = re.compile(r"(?:20|55|60|65|75|80)_.*\.txt|hyperdrive\.txt")


def rank_logs(logs: Sequence[LogFile]) -> list[LogFile]:
    """The logs of ranks, the first attempt first."""
    return sorted((log for log in logs if log.rank is not None), key=lambda log: (log.place[1], log.rank))


def driver_logs(logs: Sequence[LogFile]) -> dict[int, LogFile]:
    """The current log of each rank that has started, lowest rank first."""
    found = {log.rank: log for log in rank_logs(logs) if log.rank is not None}
    return dict(sorted(found.items()))


def tail(files: RunFiles, log: LogFile) -> str:
    """The last lines of a log as a terminal would show them."""
    start = max(0, log.size - READ)
    return last_lines(files.read_log(log.name, log.identity, start).data, cut=start > 0)


class LogText:
    """Reads what is appended to one log."""

    def __init__(self, files: RunFiles) -> None:
        self._files = files
        self._begin()

    def _begin(self) -> None:
        self._offset = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def has_begun(self) -> bool:
        """Whether anything was read."""
        return self._offset > 0

    def read_new(self, log: LogFile) -> Iterator[str]:
        """What was added since the last call, in parts. `log` is the log as it was just listed."""
        if log.size < self._offset:
            self._begin()
        while self._offset < log.size:
            part = self._files.read_log(log.name, log.identity, self._offset)
            if part.next_offset == self._offset:
                # It was just moved. The next list has its new name.
                return
            self._offset = part.next_offset
            yield self._decoder.decode(part.data)


class RunTexts:
    """The texts of a run's logs, by the identities of the logs, which stay when a failed attempt's logs are moved."""

    def __init__(self, files: RunFiles) -> None:
        self._files = files
        self._found: dict[str, LogText] = {}

    def find(self, choose: Callable[[list[LogFile]], list[LogFile]]) -> list[tuple[LogFile, LogText]]:
        """The logs that `choose` returns, each with its text."""
        return [(log, self._open(log)) for log in choose(self._files.logs())]

    def _open(self, log: LogFile) -> LogText:
        return self._found.setdefault(log.identity, LogText(self._files))


class LogReader:
    """Reads what is added to the logs of a run, in the order of their names: the preparation, then rank `rank`."""

    def __init__(self, files: RunFiles, rank: int = 0, headings: bool = True) -> None:
        self._rank = rank
        self._headings = headings
        self._texts = RunTexts(files)

    def show(self, show: Print) -> None:
        """Shows what is new."""
        for log, text in self._texts.find(self._choose):
            for part in self._new_text(log, text):
                show(part)

    def finish(self, show: Print) -> None:
        """Shows what is new at the end."""
        self.show(show)

    def _choose(self, logs: Sequence[LogFile]) -> list[LogFile]:
        return [log for log in logs if self._is_wanted(log)]

    def _is_wanted(self, log: LogFile) -> bool:
        if log.rank is not None:
            return log.rank == self._rank
        return self._headings and _SYSTEM_LOG.fullmatch(log.last_name) is not None

    def _new_text(self, log: LogFile, text: LogText) -> Iterator[str]:
        has_begun = text.has_begun
        for number, part in enumerate(text.read_new(log)):
            if number == 0 and not has_begun and self._headings:
                heading = f"Streaming azureml-logs/{log.name}"
                yield f"\n{heading}\n{'=' * len(heading)}\n\n"
            yield part
