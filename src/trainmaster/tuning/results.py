"""What a trial has to show."""

from __future__ import annotations

import math

from trainmaster.tuning.trial import Trial


def has_value(trial: Trial) -> bool:
    """Whether it has reported the primary metric as a number."""
    return any(not math.isnan(value) for value in trial.values)
