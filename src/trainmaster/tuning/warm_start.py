"""Starting from earlier sweeps, or continuing single trials of them, by v1's rules."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainmaster.job.errors import HyperDriveConfigException
from trainmaster.shared.records import TERMINAL, Status
from trainmaster.tuning.goal import PrimaryMetricGoal
from trainmaster.tuning.spec import ContinuedTrial, EarlierTrial, SweepSpec
from trainmaster.tuning.trial import Trial

_USABLE_STATES = (Status.COMPLETED, Status.CANCELED)


@dataclass(frozen=True)
class EarlierSweep:
    """A sweep named in `resume_from`."""

    run_id: str
    status: Status
    spec: SweepSpec
    trials: tuple[Trial, ...] = ()


@dataclass(frozen=True)
class EarlierChild:
    """A run named in `resume_child_runs`."""

    run_id: str
    status: Status
    parent_id: str | None
    parameters: Mapping[str, Any]


def with_history(spec: SweepSpec, sweeps: Sequence[EarlierSweep], children: Sequence[EarlierChild]) -> SweepSpec:
    """Adds the trials of earlier sweeps and runs to `spec`; raises an error if they do not fit."""
    for sweep in sweeps:
        _check_sweep(spec, sweep)
    for child in children:
        _check_child(child)
    trials = [trial for sweep in sweeps for trial in sweep.trials if _is_usable(trial, spec.goal)]
    return replace(
        spec,
        earlier=tuple(EarlierTrial(trial.parameters, trial.best(spec.goal)) for trial in trials),
        continued=tuple(ContinuedTrial(child.run_id, child.parameters) for child in children),
    )


def _is_usable(trial: Trial, goal: PrimaryMetricGoal) -> bool:
    return trial.status in _USABLE_STATES and math.isfinite(trial.best(goal))


def _check_sweep(spec: SweepSpec, sweep: EarlierSweep) -> None:
    if sweep.status not in _USABLE_STATES:
        raise HyperDriveConfigException(
            f"resume_from: {sweep.run_id} is {sweep.status}; it must be Completed or Canceled",
            hint="Wait until it has ended." if sweep.status not in TERMINAL else "",
        )
    theirs, ours = (sweep.spec.metric, sweep.spec.goal), (spec.metric, spec.goal)
    if theirs != ours:
        raise HyperDriveConfigException(
            f"resume_from: {sweep.run_id} has a different primary metric or goal",
            cause=f"{theirs[0]!r}, {theirs[1]} there; {ours[0]!r}, {ours[1]} here",
        )
    if spec.sampling.kind == "bayesian" and dict(sweep.spec.space) != dict(spec.space):
        raise HyperDriveConfigException(
            f"resume_from: {sweep.run_id} has a different parameter space",
            hint="Bayesian sampling can only learn from a sweep with the same space.",
        )


def _check_child(child: EarlierChild) -> None:
    if child.parent_id is None:
        raise HyperDriveConfigException(f"resume_child_runs: {child.run_id} is not a run of a sweep")
    if child.status not in TERMINAL:
        raise HyperDriveConfigException(
            f"resume_child_runs: {child.run_id} is {child.status}", hint="Wait until it has ended, or cancel it."
        )
