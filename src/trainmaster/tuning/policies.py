"""Early termination policies, as users write them. `decisions.py` has what they decide.

An interval is one report of the primary metric. A policy judges a trial once at every multiple of
`evaluation_interval` that is at least `delay_evaluation`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trainmaster.job.errors import HyperDriveConfigException
from trainmaster.tuning import checks
from trainmaster.tuning.spec import PolicySpec


class EarlyTerminationPolicy:
    """The base class of all policies; use one of the others."""

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
        """The number of reports between two judgements."""
        return self._spec.evaluation_interval

    @property
    def delay_evaluation(self) -> int:
        """The first report at which a trial may be judged."""
        return self._spec.delay_evaluation


class NoTerminationPolicy(EarlyTerminationPolicy):
    """Every trial runs to its end."""

    def __init__(self) -> None:
        super().__init__(PolicySpec())


class BanditPolicy(EarlyTerminationPolicy):
    """Cuts trials that are worse than the best one by more than `slack_factor` (a ratio) or `slack_amount`."""

    def __init__(
        self,
        evaluation_interval: int = 1,
        slack_factor: float | None = None,
        slack_amount: float | None = None,
        delay_evaluation: int = 0,
    ) -> None:
        if (slack_factor is None) == (slack_amount is None):
            raise HyperDriveConfigException(
                "BanditPolicy needs either slack_factor or slack_amount, but not both",
                hint="For example: BanditPolicy(slack_factor=0.1).",
            )
        super().__init__(
            PolicySpec(
                kind="bandit",
                **_intervals(evaluation_interval, delay_evaluation),
                slack_factor=None if slack_factor is None else checks.check_not_negative("slack_factor", slack_factor),
                slack_amount=None if slack_amount is None else checks.check_not_negative("slack_amount", slack_amount),
            )
        )

    @property
    def slack_factor(self) -> float | None:
        """The allowed ratio to the best trial."""
        return self._spec.slack_factor

    @property
    def slack_amount(self) -> float | None:
        """The allowed distance from the best trial."""
        return self._spec.slack_amount


class MedianStoppingPolicy(EarlyTerminationPolicy):
    """Cuts trials whose best value is worse than the median of all trials' averages."""

    def __init__(self, evaluation_interval: int = 1, delay_evaluation: int = 0) -> None:
        super().__init__(PolicySpec(kind="median", **_intervals(evaluation_interval, delay_evaluation)))


class TruncationSelectionPolicy(EarlyTerminationPolicy):
    """Cuts the given percentage of the worst trials at each interval."""

    def __init__(self, truncation_percentage: int, evaluation_interval: int = 1, delay_evaluation: int = 0) -> None:
        super().__init__(
            PolicySpec(
                kind="truncation",
                **_intervals(evaluation_interval, delay_evaluation),
                truncation_percentage=checks.check_integer("truncation_percentage", truncation_percentage, 1, 99),
            )
        )

    @property
    def truncation_percentage(self) -> int:
        """The percentage of trials that are cut."""
        return self._spec.truncation_percentage


class HyperbandPolicy(EarlyTerminationPolicy):
    """Asynchronous successive halving (ASHA); with several brackets, Hyperband. Not in v1.

    At report `min_intervals`, and then at every `reduction_factor` times as many, a trial continues only if it is among
    the best 1/`reduction_factor` of the trials that have reached this report. Trials are assigned to the brackets in
    turn and compared within their bracket. Each further bracket starts to cut one step later.
    """

    def __init__(self, min_intervals: int = 1, reduction_factor: int = 3, brackets: int = 1) -> None:
        super().__init__(
            PolicySpec(
                kind="hyperband",
                min_intervals=checks.check_integer("min_intervals", min_intervals, 1),
                reduction_factor=checks.check_integer("reduction_factor", reduction_factor, 2),
                brackets=checks.check_integer("brackets", brackets, 1),
            )
        )


POLICIES: Mapping[str, Callable[..., EarlyTerminationPolicy]] = {
    "none": NoTerminationPolicy,
    "bandit": BanditPolicy,
    "median": MedianStoppingPolicy,
    "truncation": TruncationSelectionPolicy,
    "hyperband": HyperbandPolicy,
}
"""The policies by their kinds; the parameters of each are fields of PolicySpec."""


def _intervals(evaluation_interval: Any, delay_evaluation: Any) -> dict[str, Any]:
    return {
        "evaluation_interval": checks.check_integer("evaluation_interval", evaluation_interval, 1),
        "delay_evaluation": checks.check_integer("delay_evaluation", delay_evaluation, 0),
    }
