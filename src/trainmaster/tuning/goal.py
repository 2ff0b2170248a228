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
