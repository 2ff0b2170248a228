"""What a sampler knows about a trial."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trainmaster.tuning.space import Parameters

Outcome = Literal["going", "ended", "failed"]


@dataclass(frozen=True)
class Observation:
    """The parameters and the result of a trial. A trial that was cut has ended with its best value."""

    parameters: Parameters
    outcome: Outcome = "going"
    value: float | None = None
    """The best value of the primary metric, if there is one."""
