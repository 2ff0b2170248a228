"""Early termination policies: what a person writes. What they decide is in `decisions.py`.

An interval is one report of the primary metric. A policy looks at a trial once at every multiple of
`evaluation_interval` that is at least `delay_evaluation`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trainmaster.job.errors import HyperDriveConfigException
from trainmaster.tuning import checks
from trainmaster.tuning.spec import PolicySpec


class EarlyTerminationPolicy:
    """What all policies have in common; use one of the others."""

    def __init__(self, spec: PolicySpec) -> None:
        self._spec = spec

    def compile(self) -> PolicySpec:
        """The policy as plain data."""
        return self._spec

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EarlyTerminationPolicy) and self._spec == other._spec

    def __hash__(self) -> int:
        return hash(self._spec)

    @property
    def evaluation_interval(self) -> int:
        """It acts every so many reports."""
        return self._spec.evaluation_interval

    @property
    def delay_evaluation(self) -> int:
        """The first report at which it may act."""
        return self._spec.delay_evaluation


class NoTerminationPolicy(EarlyTerminationPolicy):
    """Every trial runs to its end."""

    def __init__(self) -> None:
        super().__init__(PolicySpec())


class BanditPolicy(EarlyTerminationPolicy):
    """Cuts trials that are further behind the best one than `slack_factor` (a ratio) or `slack_amount`."""

    def __init__(
        self,
        evaluation_interval: int = 1,
        slack_factor: float | None = None,
        slack_amount: float | None = None,
        delay_evaluation: int = 0,
    ) -> None:
        if (slack_factor is None) == (slack_amount is None):
            raise HyperDriveConfigException(
                "BanditPolicy needs one of slack_factor and slack_amount, and not both",
                hint="Write BanditPolicy(slack_factor=0.1), for instance.",
            )
        super().__init__(
            PolicySpec(
                kind="bandit",
                **_when(evaluation_interval, delay_evaluation),
                slack_factor=None if slack_factor is None else checks.not_negative("slack_factor", slack_factor),
                slack_amount=None if slack_amount is None else checks.not_negative("slack_amount", slack_amount),
            )
        )

    @property
    def slack_factor(self) -> float | None:
        """The allowed ratio behind the best trial."""
        return self._spec.slack_factor

    @property
    def slack_amount(self) -> float | None:
        """The allowed distance behind the best trial."""
        return self._spec.slack_amount


class MedianStoppingPolicy(EarlyTerminationPolicy):
    """Cuts trials whose best value is worse than the median of all trials' averages."""

    def __init__(self, evaluation_interval: int = 1, delay_evaluation: int = 0) -> None:
        super().__init__(PolicySpec(kind="median", **_when(evaluation_interval, delay_evaluation)))


class TruncationSelectionPolicy(EarlyTerminationPolicy):
    """Cuts the given percentage of the worst trials at each interval."""

    def __init__(self, truncation_percentage: int, evaluation_interval: int = 1, delay_evaluation: int = 0) -> None:
        super().__init__(
            PolicySpec(
                kind="truncation",
                **_when(evaluation_interval, delay_evaluation),
                truncation_percentage=checks.whole("truncation_percentage", truncation_percentage, 1, 99),
            )
        )

    @property
    def truncation_percentage(self) -> int:
        """How many of a hundred are cut."""
        return self._spec.truncation_percentage


class HyperbandPolicy(EarlyTerminationPolicy):
    """Asynchronous successive halving (ASHA); with several brackets, Hyperband. Not in v1.

    At report `min_intervals`, and then at every `reduction_factor` times as many, a trial goes on only if it is among
    the best one in `reduction_factor` of those that came so far. Trials take turns in the brackets; each next bracket
    begins to cut one step later, and trials are compared within theirs.
    """

    def __init__(self, min_intervals: int = 1, reduction_factor: int = 3, brackets: int = 1) -> None:
        super().__init__(
            PolicySpec(
                kind="hyperband",
                min_intervals=checks.whole("min_intervals", min_intervals, 1),
                reduction_factor=checks.whole("reduction_factor", reduction_factor, 2),
                brackets=checks.whole("brackets", brackets, 1),
            )
        )


POLICIES: Mapping[str, Callable[..., EarlyTerminationPolicy]] = {
    "none": NoTerminationPolicy,
    "bandit": BanditPolicy,
    "median": MedianStoppingPolicy,
    "truncation": TruncationSelectionPolicy,
    "hyperband": HyperbandPolicy,
}
"""By their kinds; the parameters of each are fields of PolicySpec."""


def _when(evaluation_interval: Any, delay_evaluation: Any) -> dict[str, Any]:
    return {
        "evaluation_interval": checks.whole("evaluation_interval", evaluation_interval, 1),
        "delay_evaluation": checks.whole("delay_evaluation", delay_evaluation, 0),
    }
