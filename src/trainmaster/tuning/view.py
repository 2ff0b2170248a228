"""A sweep at one moment, as plain data for display. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainmaster.shared.metrics import thin
from trainmaster.shared.records import TERMINAL, Status
from trainmaster.tuning.goal import PrimaryMetricGoal
from trainmaster.tuning.samplers import grid
from trainmaster.tuning.spec import PolicySpec, SamplingSpec, SweepSpec
from trainmaster.tuning.trial import Decision, Trial

SERIES_POINTS = 40
"""The most reports of a trial in a view: enough for one line of blocks."""


@dataclass(frozen=True)
class TrialView:
    """One trial. Times are seconds since the epoch (UTC)."""

    number: int
    run_id: str
    status: Status
    parameters: Mapping[str, Any]
    best: float | None = None
    """The best of its reports; None if none is a number."""
    last: float | None = None
    reports: int = 0
    series: tuple[float, ...] = ()
    """Its reports, oldest first, at most `SERIES_POINTS`."""
    started_at: float | None = None
    ended_at: float | None = None
    cut_interval: int | None = None
    """The report at which the policy cut it; None if it was not cut."""
    cut_reason: str = ""
    """The policy's reason."""
    error: str = ""
    """Why it failed, in one line."""

    @property
    def has_ended(self) -> bool:
        """Whether its state is final."""
        return self.status in TERMINAL


@dataclass(frozen=True)
class SweepView:
    """A sweep and its trials."""

    run_id: str
    experiment: str
    status: Status
    metric: str
    goal: PrimaryMetricGoal
    sampling: str
    """In words: `bayesian (tpe)`."""
    policy: str
    """In words: `bandit, slack_factor=0.1`."""
    space: Mapping[str, Any]
    """Parameter name to expression, in v1's form: an axis of a picture is logarithmic if the expression is."""
    max_total_runs: int
    max_concurrent_runs: int
    total: int
    """How many trials it will have, unless it ends early: a grid may have fewer points than `max_total_runs`."""
    max_duration_minutes: int
    started_at: float | None = None
    ended_at: float | None = None
    ending: str = ""
    """Why it ends or ended, in one line."""
    warnings: tuple[str, ...] = ()
    waiting_for: str = ""
    trials: tuple[TrialView, ...] = ()
    """By number."""

    @property
    def has_ended(self) -> bool:
        """Whether its state is final."""
        return self.status in TERMINAL

    @property
    def best(self) -> TrialView | None:
        """The trial with the best value."""
        return best_of([self])


@dataclass(frozen=True)
class Counts:
    """How many trials are in which state."""

    started: int = 0
    going: int = 0
    completed: int = 0
    cut: int = 0
    """Cancelled by the policy."""
    canceled: int = 0
    """Cancelled by a user, or because the sweep ended."""
    failed: int = 0

    @property
    def ended(self) -> int:
        """The number of trials whose state is final."""
        return self.started - self.going


@dataclass(frozen=True)
class SweepSummary:
    """A sweep in a list: everything except its trials, of which there may be thousands."""

    view: SweepView
    """Without trials."""
    counts: Counts
    best: TrialView | None = None
    seconds_left: float | None = None
    """The estimated remaining time; None if unknown or if the sweep has ended."""


@dataclass(frozen=True)
class SweepChanges:
    """A sweep with the trials that have changed since an earlier answer."""

    view: SweepView
    version: str
    """Pass it on with the next request."""
    whole: bool
    """Whether the view has all trials."""


def sweep_view(
    spec: SweepSpec,
    run_id: str,
    experiment: str,
    status: Status,
    trials: Iterable[TrialView],
    *,
    started_at: float | None = None,
    ended_at: float | None = None,
    ending: str = "",
    warnings: tuple[str, ...] = (),
    waiting_for: str = "",
) -> SweepView:
    """The view of the sweep that `spec` describes."""
    return SweepView(
        run_id=run_id,
        experiment=experiment,
        status=status,
        metric=spec.metric,
        goal=spec.goal,
        sampling=sampling_in_words(spec.sampling),
        policy=policy_in_words(spec.policy),
        space=spec.space,
        max_total_runs=spec.max_total_runs,
        max_concurrent_runs=spec.max_concurrent_runs,
        total=total(spec),
        max_duration_minutes=spec.max_duration_minutes,
        started_at=started_at,
        ended_at=ended_at,
        ending=ending,
        warnings=warnings,
        waiting_for=waiting_for,
        trials=tuple(sorted(trials, key=lambda trial: trial.number)),
    )


def trial_view(
    goal: PrimaryMetricGoal,
    trial: Trial,
    run_id: str,
    started_at: float | None = None,
    cut: Decision | None = None,
) -> TrialView:
    """The view of `trial`; `cut` is the decision that ended it."""
    return TrialView(
        number=trial.number,
        run_id=run_id,
        status=trial.status,
        parameters=trial.parameters,
        best=trial.best(goal) if trial.has_value else None,
        last=trial.values[-1] if trial.values else None,
        reports=len(trial.values),
        series=tuple(thin(trial.values, SERIES_POINTS)),
        started_at=started_at,
        ended_at=trial.ended_at,
        cut_interval=None if cut is None else cut.interval,
        cut_reason="" if cut is None else cut.words,
        error=trial.error,
    )


def total(spec: SweepSpec) -> int:
    """The most trials that the sweep will have."""
    if spec.sampling.kind != "grid":
        return spec.max_total_runs
    return min(spec.max_total_runs, len(spec.continued) + grid.size(spec.nodes))


def sampling_in_words(sampling: SamplingSpec) -> str:
    """
    >>> sampling_in_words(SamplingSpec("bayesian", algorithm="gp")), sampling_in_words(SamplingSpec("grid"))
    ('bayesian (gp)', 'grid')
    """
    return f"{sampling.kind} ({sampling.algorithm})" if sampling.kind == "bayesian" else sampling.kind


def policy_in_words(policy: PolicySpec) -> str:
    """
    >>> policy_in_words(PolicySpec("bandit", slack_factor=0.1, evaluation_interval=2, delay_evaluation=5))
    'bandit, slack_factor=0.1, every 2 reports, from the 5th'
    >>> policy_in_words(PolicySpec("truncation", truncation_percentage=20)), policy_in_words(PolicySpec())
    ('truncation, 20 %', 'none')
    """
    words: list[str] = [policy.kind]
    if policy.slack_factor is not None:
        words.append(f"slack_factor={policy.slack_factor:g}")
    if policy.slack_amount is not None:
        words.append(f"slack_amount={policy.slack_amount:g}")
    if policy.kind == "truncation":
        words.append(f"{policy.truncation_percentage} %")
    if policy.kind == "hyperband":
        words.append(f"1 of {policy.reduction_factor} from report {policy.min_intervals}")
        words += [f"{policy.brackets} brackets"] if policy.brackets > 1 else []
    if policy.evaluation_interval > 1:
        words.append(f"every {policy.evaluation_interval} reports")
    if policy.delay_evaluation > 1:
        words.append(f"from the {_ordinal(policy.delay_evaluation)}")
    return ", ".join(words)


def rank_trials(view: SweepView) -> list[TrialView]:
    """The trials, best first; those without a value last, with running trials before finished ones."""
    sign = -1 if view.goal == PrimaryMetricGoal.MAXIMIZE else 1
    return sorted(
        view.trials,
        key=lambda trial: (trial.best is None, trial.has_ended * (trial.best is None), sign * (trial.best or 0.0)),
    )


def best_of(views: Sequence[SweepView], include_failed: bool = True, include_canceled: bool = True) -> TrialView | None:
    """The trial with the best reported value in all sweeps; None if there is no value.

    Of equal trials, the one of the first sweep is returned.
    """
    excluded = {*(() if include_failed else (Status.FAILED,)), *(() if include_canceled else (Status.CANCELED,))}
    together = replace(views[0], trials=tuple(trial for view in views for trial in view.trials))
    found = (trial for trial in rank_trials(together) if trial.best is not None and trial.status not in excluded)
    return next(found, None)


def counts(view: SweepView) -> Counts:
    """How many trials are in which state."""
    return count_states(Counter((trial.status, trial.cut_interval is not None) for trial in view.trials))


def count_states(trials: Mapping[tuple[Status, bool], int]) -> Counts:
    """The same from numbers of trials by state and by whether the policy cut them."""
    total: Counter[Status] = Counter()
    for (status, _), count in trials.items():
        total[status] += count
    return Counts(
        started=sum(total.values()),
        going=sum(count for status, count in total.items() if status not in TERMINAL),
        completed=total[Status.COMPLETED],
        cut=trials.get((Status.CANCELED, True), 0),
        canceled=trials.get((Status.CANCELED, False), 0),
        failed=total[Status.FAILED],
    )


def summary_of(view: SweepView, now: float) -> SweepSummary:
    """The entry of a sweep in a list."""
    return SweepSummary(replace(view, trials=()), counts(view), view.best, seconds_left(view, now))


def seconds_left(view: SweepView, now: float) -> float | None:
    """The estimated remaining seconds, if trials take as long as those before; None if unknown."""
    took = [_seconds(trial) for trial in view.trials if trial.has_ended and trial.started_at is not None]
    if view.has_ended or view.started_at is None or not took:
        return None
    each = sum(took) / len(took)
    going = [trial for trial in view.trials if not trial.has_ended]
    rest = sum(max(0.0, each - (now - (trial.started_at or now))) for trial in going)
    rest += each * max(0, view.total - len(view.trials)) if not view.ending else 0.0
    most = max(0.0, view.started_at + 60 * view.max_duration_minutes - now)
    return min(most, rest / max(1, len(going)))


def value_in_words(value: Any) -> str:
    """A sampled value as text: numbers with four digits, lists with commas."""
    if isinstance(value, list | tuple):
        return ",".join(value_in_words(item) for item in value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _seconds(trial: TrialView) -> float:
    if trial.started_at is None or trial.ended_at is None:
        return 0.0
    return max(0.0, trial.ended_at - trial.started_at)


def _ordinal(number: int) -> str:
    ending = "th" if 10 < number % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
