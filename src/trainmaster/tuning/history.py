"""The trials of a sweep, with totals that are updated with each change.

A sweep plans whenever a trial ends. Without the totals, the thousandth plan would take longer than the first.
"""

from __future__ import annotations

from collections.abc import Iterable

from trainmaster.shared.records import Status
from trainmaster.tuning.trial import Trial


class History:
    """All trials so far, in their latest states."""

    def __init__(self, trials: Iterable[Trial] = ()) -> None:
        self._trials: dict[int, Trial] = {}
        self._ordered: tuple[Trial, ...] | None = ()
        self._highest = -1
        self._reported: set[int] = set()
        self.going: dict[int, Trial] = {}
        """The trials that have not ended, by number."""
        self.failed = 0
        self.completed = 0
        self.first_completed: Trial | None = None
        """The trial that completed first."""
        for trial in trials:
            self.put(trial)

    def __len__(self) -> int:
        return len(self._trials)

    def put(self, trial: Trial) -> None:
        """Adds a trial or replaces it after a change."""
        number = trial.number
        before = self._trials.get(number)
        if before is not None:
            self._count(before, -1)
        self._trials[number] = trial
        self._ordered = None
        self._highest = max(self._highest, number)
        self._count(trial, 1)
        if trial.has_value:
            self._reported.add(number)
        if trial.has_ended:
            self.going.pop(number, None)
        else:
            self.going[number] = trial
        if trial.status is Status.COMPLETED and self._is_first(trial):
            self.first_completed = trial

    def _count(self, trial: Trial, one: int) -> None:
        self.failed += one * (trial.status is Status.FAILED)
        self.completed += one * (trial.status is Status.COMPLETED)

    def _is_first(self, trial: Trial) -> bool:
        first = self.first_completed
        return first is None or _end_key(trial) <= _end_key(first)

    @property
    def ordered(self) -> tuple[Trial, ...]:
        """All trials by number; unchanged trials are the same objects as before."""
        if self._ordered is None:
            self._ordered = tuple(self._trials[number] for number in sorted(self._trials))
        return self._ordered

    @property
    def in_order_of_end(self) -> list[Trial]:
        """The trials that have ended, in the order of their ends."""
        return sorted((trial for trial in self._trials.values() if trial.has_ended), key=_end_key)

    @property
    def has_reports(self) -> bool:
        """Whether any trial has reported a value."""
        return bool(self._reported)

    def free_numbers(self, limit: int) -> Iterable[int]:
        """The numbers below `limit` that no trial has, in ascending order."""
        # The numbers of the trials usually have no gap.
        gapless = self._highest == len(self._trials) - 1
        first = len(self._trials) if gapless else 0
        return (number for number in range(first, limit) if number not in self._trials)


def _end_key(trial: Trial) -> tuple[float, int]:
    """Sorts by the time of the end; a trial that ended at an unknown time comes first."""
    return trial.ended_at or 0.0, trial.number
