"""Which way is better."""

from __future__ import annotations

import math
from enum import StrEnum


class PrimaryMetricGoal(StrEnum):
    """Whether the primary metric is to be as large or as small as possible."""

    MAXIMIZE = "MAXIMIZE"
    MINIMIZE = "MINIMIZE"


def is_worse(goal: PrimaryMetricGoal, one: float, other: float) -> bool:
    """Whether `one` is strictly worse than `other`."""
    return one < other if goal == PrimaryMetricGoal.MAXIMIZE else one > other


def worst(goal: PrimaryMetricGoal) -> float:
    """What is worse than every number."""
    return -math.inf if goal == PrimaryMetricGoal.MAXIMIZE else math.inf


def best_of(goal: PrimaryMetricGoal, values: tuple[float, ...]) -> float | None:
    """The best of `values`; those that are no numbers (nan) do not count."""
    numbers = [value for value in values if not math.isnan(value)]
    if not numbers:
        return None
    return max(numbers) if goal == PrimaryMetricGoal.MAXIMIZE else min(numbers)
