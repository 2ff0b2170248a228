"""What a sampler is told of a trial."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trainmaster.tuning.space import Parameters

Outcome = Literal["going", "ended", "failed"]


@dataclass(frozen=True)
class Observation:
    """A trial as far as sampling is concerned: a cut one has ended, with the best value it had."""

    parameters: Parameters
    outcome: Outcome = "going"
    value: float | None = None
    """The best value of the primary metric; None for one that has none."""
