"""How much each parameter of a sweep matters: how much of the differences between trials it explains. Pure.

The metric is replaced by ranks, so that a single extreme trial does not decide. The trials are put into groups by the
value of a parameter (numbers into up to eight groups of about equal size), and the importance is the share of the
variance that lies between the groups, less what random groups would explain (epsilon squared). It is the first-order
part of a functional ANOVA: parameters that matter only together with others show little. Numbers also have Spearman's
rank correlation, which says in which direction they matter.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

LEAST_TRIALS = 5
_MOST_GROUPS = 8
_LEAST_IN_GROUP = 3


@dataclass(frozen=True)
class ParameterImportance:
    """How much a parameter matters."""

    name: str
    importance: float
    """The share of the variance that it explains, from 0 to 1."""
    correlation: float | None
    """Spearman's, from -1 to 1: positive if larger values go with larger values of the metric. Null for words."""
    trials: int
    """How many trials have it."""


@dataclass(frozen=True)
class SweepImportance:
    """How much each parameter of a sweep matters."""

    parameters: tuple[ParameterImportance, ...]
    """Most important first."""
    trials: int
    """The trials that have a value of the metric."""
    notice: str = ""
    """Why nothing can be said."""


def rate_parameters(trials: Sequence[tuple[Mapping[str, Any], float | None]]) -> SweepImportance:
    """The importance of all parameters. Each trial is its parameters and its best value of the metric."""
    rated = [(parameters, value) for parameters, value in trials if value is not None and not math.isnan(value)]
    if len(rated) < LEAST_TRIALS:
        return SweepImportance((), len(rated), f"At least {LEAST_TRIALS} trials with a value are needed.")
    ranks = rank([value for _, value in rated])
    if len(set(ranks)) == 1:
        return SweepImportance((), len(rated), "All trials have the same value.")
    names = sorted({name for parameters, _ in rated for name in parameters})
    found = [_rate(name, [parameters.get(name) for parameters, _ in rated], ranks) for name in names]
    return SweepImportance(tuple(sorted(found, key=lambda each: (-each.importance, each.name))), len(rated))


def _rate(name: str, values: Sequence[Any], ranks: Sequence[float]) -> ParameterImportance:
    present = [(value, rank) for value, rank in zip(values, ranks, strict=True) if value is not None]
    correlation = None
    if all(_is_number(value) for value, _ in present):
        correlation = correlate(rank([float(value) for value, _ in present]), [each for _, each in present])
    groups = _group(values)
    return ParameterImportance(name, explain_variance(groups, ranks), correlation, len(present))


def _group(values: Sequence[Any]) -> list[str]:
    """The group of each value."""
    present = [value for value in values if value is not None]
    if not all(map(_is_number, present)) or len(set(map(float, present))) <= _MOST_GROUPS:
        return ["" if value is None else json.dumps(value, sort_keys=True, default=str) for value in values]
    count = max(2, min(_MOST_GROUPS, len(present) // _LEAST_IN_GROUP))
    places = iter(rank([float(value) for value in present]))
    return ["" if value is None else str(int((next(places) - 1) * count / len(present))) for value in values]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def explain_variance(groups: Sequence[str], values: Sequence[float]) -> float:
    """The share of the variance that lies between groups, less what chance explains (epsilon squared).

    >>> explain_variance(["a", "a", "a", "b", "b", "b"], [1, 1, 1, 5, 5, 5])
    1.0
    >>> explain_variance(["a", "b", "a", "b"], [1, 1, 2, 2])
    0.0
    """
    members: dict[str, list[float]] = {}
    for group, value in zip(groups, values, strict=True):
        members.setdefault(group, []).append(value)
    mean = sum(values) / len(values)
    total = sum((value - mean) ** 2 for value in values)
    within = 0.0
    for each in members.values():
        middle = sum(each) / len(each)
        within += sum((value - middle) ** 2 for value in each)
    spare = len(values) - len(members)
    if total <= 0 or len(members) < 2 or spare < 1:
        return 0.0
    by_chance = (len(members) - 1) * within / spare
    return min(1.0, max(0.0, (total - within - by_chance) / total))


def correlate(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Pearson's correlation; None if one side is constant."""
    count = len(left)
    if count < 2:
        return None
    means = sum(left) / count, sum(right) / count
    both = sum((a - means[0]) * (b - means[1]) for a, b in zip(left, right, strict=True))
    squares = sum((a - means[0]) ** 2 for a in left) * sum((b - means[1]) ** 2 for b in right)
    return max(-1.0, min(1.0, both / math.sqrt(squares))) if squares > 0 else None


def rank(values: Sequence[float]) -> list[float]:
    """The rank of each value, from 1 on; equal values share the middle of their ranks.

    >>> rank([10, 30, 20, 20])
    [1.0, 4.0, 2.5, 2.5]
    """
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    first = 0
    while first < len(order):
        last = first
        while last + 1 < len(order) and values[order[last + 1]] == values[order[first]]:
            last += 1
        for place in range(first, last + 1):
            ranks[order[place]] = (first + last) / 2 + 1
        first = last + 1
    return ranks
