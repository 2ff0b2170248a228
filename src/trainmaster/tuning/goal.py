"""The goal of a sweep: which values of the metric are better."""

from __future__ import annotations

import math
from enum import StrEnum


class PrimaryMetricGoal(StrEnum):
    """Whether to maximize or minimize the primary metric."""

    MAXIMIZE = "MAXIMIZE"
    MINIMIZE = "MINIMIZE"


def is_worse(goal: PrimaryMetricGoal, one: float, other: float) -> bool:
    """Whether `one` is strictly worse than `other`."""
    return one < other if goal == PrimaryMetricGoal.MAXIMIZE else one > other


def worst(goal: PrimaryMetricGoal) -> float:
    """A value that is worse than every number."""
    return -math.inf if goal == PrimaryMetricGoal.MAXIMIZE else math.inf
