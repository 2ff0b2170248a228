"""A trial as the planning sees it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

from trainmaster.shared.records import TERMINAL, Status
from trainmaster.tuning.goal import PrimaryMetricGoal, worst


@dataclass(frozen=True)
class Trial:
    """One run of a sweep. Keep the object while the trial does not change: it caches computed values."""

    number: int
    parameters: Mapping[str, Any]
    status: Status = Status.NOT_STARTED
    values: tuple[float, ...] = ()
    """The reports of the primary metric, oldest first."""
    judged: int = 0
    """The last interval at which the policy judged it; stored, so that nothing is decided twice."""
    ended_at: float | None = None
    metric_names: tuple[str, ...] = ()
    """The names of all logged metrics; needed after its end."""
    error: str = ""
    """Why it failed, in one line."""

    @cached_property
    def has_ended(self) -> bool:
        """Whether its state is final."""
        return self.status in TERMINAL

    @cached_property
    def can_be_cut(self) -> bool:
        """Whether it is running and not being cancelled."""
        return not self.has_ended and self.status not in (Status.CANCEL_REQUESTED, Status.FINALIZING)

    @cached_property
    def has_value(self) -> bool:
        """Whether it has reported the primary metric as a number."""
        return any(not math.isnan(value) for value in self.values)

    def best(self, goal: PrimaryMetricGoal, interval: int | None = None) -> float:
        """The best of the first `interval` reports, or of all; the worst possible value if none is a number."""
        running = self._largest if goal == PrimaryMetricGoal.MAXIMIZE else self._smallest
        count = len(running) if interval is None else interval
        return running[count - 1] if count else worst(goal)

    def average(self, interval: int) -> float:
        """The mean of the first `interval` reports."""
        mean = self._sums[interval - 1] / interval
        if math.isnan(mean):
            return mean
        # Rounding must not make it better than the best; a trial could be worse than its own average.
        return min(max(mean, self._smallest[interval - 1]), self._largest[interval - 1])

    @cached_property
    def _largest(self) -> list[float]:
        return list(accumulate((-math.inf if math.isnan(each) else each for each in self.values), max))

    @cached_property
    def _smallest(self) -> list[float]:
        return list(accumulate((math.inf if math.isnan(each) else each for each in self.values), min))

    @cached_property
    def _sums(self) -> list[float]:
        return list(accumulate(self.values))


@dataclass(frozen=True)
class Decision:
    """The decision of a policy about a trial at an interval, and its reason."""

    number: int
    interval: int
    cut: bool
    words: str
