"""SweepSpec: the frozen description of a sweep, and the only part of it that the layers below the SDK know."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from trainmaster.job.errors import HyperDriveConfigException, HyperDriveRehydrateException
from trainmaster.shared.job_spec import JobSpec
from trainmaster.shared.serialization import PlainDataError, from_plain, to_plain
from trainmaster.tuning.goal import PrimaryMetricGoal
from trainmaster.tuning.space import Node, read_space

SPEC_VERSION = 1
FAILURES_IN_A_ROW = 5
MAX_DURATION_MINUTES = 10080

SamplingKind = Literal["random", "grid", "bayesian"]
Algorithm = Literal["tpe", "gp"]
PolicyKind = Literal["none", "bandit", "median", "truncation", "hyperband"]


@dataclass(frozen=True)
class SamplingSpec:
    """How the parameters of trials are chosen."""

    kind: SamplingKind = "random"
    seed: int = 0
    algorithm: Algorithm = "tpe"
    """For `bayesian` only."""


@dataclass(frozen=True)
class PolicySpec:
    """When a trial is cut. Each kind uses only its own fields."""

    kind: PolicyKind = "none"
    evaluation_interval: int = 1
    delay_evaluation: int = 0
    slack_factor: float | None = None
    slack_amount: float | None = None
    truncation_percentage: int = 0
    min_intervals: int = 1
    reduction_factor: int = 3
    brackets: int = 1


@dataclass(frozen=True)
class EarlierTrial:
    """A trial of an earlier sweep, from which Bayesian sampling learns before the first trial."""

    parameters: Mapping[str, Any]
    value: float


@dataclass(frozen=True)
class ContinuedTrial:
    """A trial of an earlier sweep that continues in this one with the same parameters."""

    run_id: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class SweepSpec:
    """Everything needed to run a sweep."""

    job: JobSpec
    """The job of every trial, without the sampled arguments."""
    space: Mapping[str, Any]
    """Parameter name to expression, in v1's form."""
    metric: str
    goal: PrimaryMetricGoal
    max_total_runs: int
    max_concurrent_runs: int
    version: int = SPEC_VERSION
    max_duration_minutes: int = MAX_DURATION_MINUTES
    max_failures_in_a_row: int = FAILURES_IN_A_ROW
    sampling: SamplingSpec = field(default_factory=SamplingSpec)
    policy: PolicySpec = field(default_factory=PolicySpec)
    resume_from: tuple[str, ...] = ()
    """The ids of the earlier sweeps that this one starts from."""
    resume_child_runs: tuple[str, ...] = ()
    earlier: tuple[EarlierTrial, ...] = ()
    """The trials of `resume_from`; set by submit."""
    continued: tuple[ContinuedTrial, ...] = ()
    """The trials of `resume_child_runs`; set by submit. They are the first trials."""
    custom_run_id: str = ""

    @cached_property
    def nodes(self) -> dict[str, Node]:
        """The parsed space."""
        return read_space(self.space)


def dump_sweep(spec: SweepSpec) -> str:
    """`spec` as JSON text. It keeps the order of parameters, which is the order of a grid."""
    return json.dumps(to_plain(spec), indent=1)


def load_sweep(text: str, where: str = "the description of the sweep") -> SweepSpec:
    """Reads a SweepSpec; raises an error for anything else."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise HyperDriveRehydrateException(f"{where} is not JSON", cause=str(error)) from None
    version = data.get("version") if isinstance(data, dict) else None
    if isinstance(version, int) and version > SPEC_VERSION:
        raise HyperDriveRehydrateException(
            f"{where} has version {version}; this Trainmaster reads up to {SPEC_VERSION}",
            hint="Install a newer Trainmaster.",
        )
    try:
        spec = from_plain(SweepSpec, data, where)
        read_space(spec.space)
    except (PlainDataError, HyperDriveConfigException) as error:
        raise HyperDriveRehydrateException(f"{where} cannot be used", cause=str(error)) from None
    problem = _problem(spec)
    if problem:
        raise HyperDriveRehydrateException(f"{where} cannot be used", cause=problem)
    return spec


def _problem(spec: SweepSpec) -> str:
    """Why the specification is invalid. A config never compiles to such a one, but a file may have been edited."""
    policy = spec.policy
    counts = {
        "max_total_runs": spec.max_total_runs,
        "max_concurrent_runs": spec.max_concurrent_runs,
        "max_duration_minutes": spec.max_duration_minutes,
        "max_failures_in_a_row": spec.max_failures_in_a_row,
        "policy.evaluation_interval": policy.evaluation_interval,
        "policy.min_intervals": policy.min_intervals,
        "policy.brackets": policy.brackets,
    }
    wrong = [f"{name}={value}" for name, value in counts.items() if value < 1]
    if wrong:
        return f"{wrong[0]} must be at least 1"
    if policy.reduction_factor < 2:
        return f"policy.reduction_factor={policy.reduction_factor} must be at least 2"
    if policy.kind == "bandit" and (policy.slack_factor is None) == (policy.slack_amount is None):
        return "a bandit policy needs either slack_factor or slack_amount"
    if policy.kind == "truncation" and not 1 <= policy.truncation_percentage <= 99:
        return f"policy.truncation_percentage={policy.truncation_percentage} must be from 1 to 99"
    return ""
