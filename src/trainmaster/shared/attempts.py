"""The attempts of a run that failed and were followed by another, as they are kept in its folder."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from trainmaster.shared.folders import RunFolder
from trainmaster.shared.json_files import read_json
from trainmaster.shared.records import RunError
from trainmaster.shared.serialization import PlainDataError, from_plain


@dataclass(frozen=True)
class FailedAttempt:
    """One attempt that failed and was followed by another; the first is number 1."""

    number: int
    error: RunError
    started_at: float | None
    ended_at: float
    again: bool = False
    """Whether the run was not at fault. Such an attempt does not count against `max_retries`."""

    @property
    def headline(self) -> str:
        """The first line of its error."""
        return self.error.message.partition("\n")[0]

    @property
    def seconds(self) -> float:
        """How long its script ran."""
        return 0.0 if self.started_at is None else max(0.0, self.ended_at - self.started_at)


def current_attempt(folder: RunFolder) -> RunFolder:
    """The folder of the current attempt: the first that has not failed."""
    while folder.failure.exists():
        folder = replace(folder, attempt=folder.attempt + 1)
    return folder


def read_failed_attempts(folder: RunFolder) -> list[FailedAttempt]:
    """The attempts before the current one, oldest first."""
    last = current_attempt(folder).attempt
    return [_read(replace(folder, attempt=number)) for number in range(1, last)]


def count_failed(folder: RunFolder) -> int:
    """How many of the earlier attempts count against `max_retries`."""
    return sum(not failed.again for failed in read_failed_attempts(folder))


def _read(folder: RunFolder) -> FailedAttempt:
    data: dict[str, Any] = read_json(folder.failure) or {}
    data.pop("version", None)
    try:
        return from_plain(FailedAttempt, data)
    except PlainDataError:
        # Edited or damaged. What counts is that it failed.
        error = RunError("Unknown", f"the reason of its failure cannot be read: {folder.failure}")
        return FailedAttempt(folder.attempt, error, None, folder.failure.stat().st_mtime)
