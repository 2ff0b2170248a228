"""Which trials are the best."""

from __future__ import annotations

import math
from collections.abc import Iterable

from trainmaster.records import Status
from trainmaster.tuning.goal import PrimaryMetricGoal
from trainmaster.tuning.trial import Trial


def ranked(goal: PrimaryMetricGoal, trials: Iterable[Trial], discard_no_metric: bool = False) -> list[Trial]:
    """The best first; of equal ones the one that was started first; those without a value last, or not at all."""
    found = sorted(trials, key=lambda trial: trial.number)
    with_value = [trial for trial in found if has_value(trial)]
    with_value.sort(key=lambda trial: trial.best(goal), reverse=goal == PrimaryMetricGoal.MAXIMIZE)
    return with_value if discard_no_metric else with_value + [trial for trial in found if not has_value(trial)]


def best_trial(
    goal: PrimaryMetricGoal, trials: Iterable[Trial], include_failed: bool = True, include_canceled: bool = True
) -> Trial | None:
    """The trial with the best value of all it has reported; None if nobody has reported any."""
    left_out = set() if include_failed else {Status.FAILED}
    left_out |= set() if include_canceled else {Status.CANCELED}
    found = ranked(goal, (trial for trial in trials if trial.status not in left_out), discard_no_metric=True)
    return found[0] if found else None


def has_value(trial: Trial) -> bool:
    """Whether it has reported the primary metric as a number."""
    return any(not math.isnan(value) for value in trial.values)
