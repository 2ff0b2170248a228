"""HyperDriveConfig: the user's description of a sweep, checked and compiled to a SweepSpec."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from trainmaster.job.errors import HyperDriveConfigException, HyperDriveScenarioNotSupportedException
from trainmaster.sdk.estimators.base import BaseEstimator
from trainmaster.sdk.estimators.script_run_config import ScriptRunConfig
from trainmaster.shared.job_spec import JobSpec
from trainmaster.shared.notices import warn, warn_deprecated
from trainmaster.shared.spelling import suggests_keywords
from trainmaster.tuning import checks
from trainmaster.tuning.arguments import remove_arguments
from trainmaster.tuning.goal import PrimaryMetricGoal
from trainmaster.tuning.policies import EarlyTerminationPolicy, NoTerminationPolicy
from trainmaster.tuning.sampling import BayesianParameterSampling, HyperParameterSampling
from trainmaster.tuning.space import Branches, Space, read_space
from trainmaster.tuning.spec import FAILURES_IN_A_ROW, MAX_DURATION_MINUTES, SweepSpec

_MAX_PARENTS = 5
_RUNS_PER_PARAMETER = 20
_BAYESIAN_AT_ONCE = 20


# Shorter names, which the file of a sweep uses too.
_SYNONYMS = {
    "sampling": "hyperparameter_sampling",
    "metric": "primary_metric_name",
    "goal": "primary_metric_goal",
    "max_concurrent_trials": "max_concurrent_runs",
    "max_total_trials": "max_total_runs",
    "early_termination_policy": "policy",
    "script_run_config": "run_config",
    "config": "run_config",
}


@suggests_keywords(_SYNONYMS)
class HyperDriveConfig:
    """A sweep: an estimator or a ScriptRunConfig, run many times with sampled arguments.

    Unlike in v1, the number of runs, in total or at once, has no upper limit, and a sweep may run on `local`. A sweep
    also ends when `max_failures_in_a_row` trials fail one after the other.
    """

    def __init__(
        self,
        hyperparameter_sampling: HyperParameterSampling,
        primary_metric_name: str,
        primary_metric_goal: PrimaryMetricGoal,
        max_total_runs: int,
        max_concurrent_runs: int | None = None,
        max_duration_minutes: int = MAX_DURATION_MINUTES,
        policy: EarlyTerminationPolicy | None = None,
        estimator: Any = None,
        run_config: ScriptRunConfig | None = None,
        resume_from: Any = None,
        resume_child_runs: Any = None,
        pipeline: Any = None,
        debug_flag: Any = None,
        custom_run_id: str | None = None,
        *,
        max_failures_in_a_row: int = FAILURES_IN_A_ROW,
    ) -> None:
        self._program = _program(estimator, run_config, pipeline)
        self._sampling = _sampling(hyperparameter_sampling)
        self._metric = checks.check_text("primary_metric_name", primary_metric_name)
        self._goal = _goal(primary_metric_goal)
        self._total = checks.check_integer("max_total_runs", max_total_runs, 1)
        self._at_once = _concurrent_runs(max_concurrent_runs, self._total)
        self._minutes = _minutes(max_duration_minutes)
        self._failures = checks.check_integer("max_failures_in_a_row", max_failures_in_a_row, 1)
        self._policy = _policy(policy)
        self._resume_from = _run_ids("resume_from", resume_from, _MAX_PARENTS)
        self._resume_child_runs = _run_ids("resume_child_runs", resume_child_runs, self._total)
        self._custom_run_id = "" if custom_run_id is None else checks.check_text("custom_run_id", custom_run_id)
        if isinstance(self._sampling, BayesianParameterSampling):
            _advise(self._sampling, self._total, self._at_once)

    @property
    def estimator(self) -> BaseEstimator | None:
        """The estimator given."""
        return self._program if isinstance(self._program, BaseEstimator) else None

    @property
    def run_config(self) -> ScriptRunConfig | None:
        """The ScriptRunConfig given."""
        return self._program if isinstance(self._program, ScriptRunConfig) else None

    @property
    def pipeline(self) -> None:
        """Always None: Trainmaster has no pipelines."""
        return None

    @property
    def source_directory(self) -> str:
        """The folder with the code of the trials."""
        return self._program.source_directory

    def compile(self, overrides: Mapping[str, Any]) -> SweepSpec:
        """The sweep, with the settings as they are now. `overrides` are the estimator's, and apply to this submit only.

        `show_output`, which v1's notebooks pass, has no effect, as in v1: submit does not wait.
        """
        overrides = {name: value for name, value in overrides.items() if name != "show_output"}
        sampling = self._sampling.compile()
        if sampling.kind == "bayesian":
            from trainmaster.tuning.samplers.bayesian import check_installed

            check_installed(sampling.algorithm)
        space = self._sampling.parameter_space
        return SweepSpec(
            job=_without_sampled(self._program, self._program.compile(overrides), read_space(space)),
            space=space,
            metric=self._metric,
            goal=self._goal,
            max_total_runs=self._total,
            max_concurrent_runs=self._at_once,
            max_duration_minutes=self._minutes,
            max_failures_in_a_row=self._failures,
            sampling=sampling,
            policy=self._policy.compile(),
            resume_from=self._resume_from,
            resume_child_runs=self._resume_child_runs,
            custom_run_id=self._custom_run_id,
        )


@suggests_keywords(_SYNONYMS)
class HyperDriveRunConfig(HyperDriveConfig):
    """The name of 2018 and 2019 for HyperDriveConfig."""

    def __init__(
        self,
        estimator: Any,
        hyperparameter_sampling: HyperParameterSampling,
        primary_metric_name: str,
        primary_metric_goal: PrimaryMetricGoal,
        max_total_runs: int,
        max_concurrent_runs: int | None = None,
        max_duration_minutes: int = MAX_DURATION_MINUTES,
        policy: EarlyTerminationPolicy | None = None,
    ) -> None:
        warn_deprecated("HyperDriveRunConfig", "write HyperDriveConfig(..., estimator=...)")
        super().__init__(
            hyperparameter_sampling,
            primary_metric_name,
            primary_metric_goal,
            max_total_runs,
            max_concurrent_runs=max_concurrent_runs,
            max_duration_minutes=max_duration_minutes,
            policy=policy,
            estimator=estimator,
        )


def _program(estimator: Any, run_config: Any, pipeline: Any) -> BaseEstimator | ScriptRunConfig:
    given = [value for value in (estimator, run_config, pipeline) if value is not None]
    if len(given) != 1:
        raise HyperDriveConfigException(
            f"HyperDriveConfig needs one of estimator, run_config and pipeline, not {len(given) or 'none'}",
            hint="Write estimator=PyTorch(...) or run_config=ScriptRunConfig(...).",
        )
    if pipeline is not None:
        raise HyperDriveScenarioNotSupportedException(
            "a sweep of a pipeline is not supported: Trainmaster has no pipelines",
            hint="Give an estimator or a ScriptRunConfig.",
        )
    if run_config is not None and not isinstance(run_config, ScriptRunConfig):
        raise HyperDriveConfigException(f"run_config must be a ScriptRunConfig, not {type(run_config).__name__}")
    if estimator is not None and not isinstance(estimator, BaseEstimator):
        hint = "Give it as run_config." if isinstance(estimator, ScriptRunConfig) else ""
        raise HyperDriveConfigException(f"estimator must be an estimator, not {type(estimator).__name__}", hint=hint)
    program: BaseEstimator | ScriptRunConfig = given[0]
    return program


def _sampling(value: Any) -> HyperParameterSampling:
    if not isinstance(value, HyperParameterSampling):
        raise HyperDriveConfigException(
            f"hyperparameter_sampling must be a sampling, not {type(value).__name__}",
            hint="Write RandomParameterSampling({'--lr': loguniform(-6, -1)}), for instance.",
        )
    return value


def _goal(value: Any) -> PrimaryMetricGoal:
    if not isinstance(value, PrimaryMetricGoal):
        raise HyperDriveConfigException(
            f"primary_metric_goal must be PrimaryMetricGoal.MAXIMIZE or PrimaryMetricGoal.MINIMIZE, not {value!r}"
        )
    return value


def _concurrent_runs(value: Any, total: int) -> int:
    return total if value is None else min(checks.check_integer("max_concurrent_runs", value, 1), total)


def _minutes(value: Any) -> int:
    minutes = checks.check_integer("max_duration_minutes", value, 1)
    if minutes > MAX_DURATION_MINUTES:
        warn(f"max_duration_minutes={minutes} is more than the maximum; {MAX_DURATION_MINUTES} is used instead")
    return min(minutes, MAX_DURATION_MINUTES)


def _policy(value: Any) -> EarlyTerminationPolicy:
    if value is None:
        return NoTerminationPolicy()
    if not isinstance(value, EarlyTerminationPolicy):
        raise HyperDriveConfigException(
            f"policy must be an early termination policy, not {type(value).__name__}",
            hint="Write BanditPolicy(slack_factor=0.1), for instance, or leave it out.",
        )
    return value


def _run_ids(name: str, given: Any, most: int) -> tuple[str, ...]:
    if given is None:
        return ()
    runs = list(given) if isinstance(given, list | tuple) else [given]
    ids = [run if isinstance(run, str) else str(getattr(run, "id", "")) for run in runs]
    if not ids or not all(ids):
        raise HyperDriveConfigException(f"{name} must be a list of runs, not {given!r}")
    if len(ids) > most:
        raise HyperDriveConfigException(f"{name} may have at most {most} runs, not {len(ids)}")
    twice = sorted({run_id for run_id in ids if ids.count(run_id) > 1})
    if twice:
        raise HyperDriveConfigException(f"{name} has the run {twice[0]} twice")
    return tuple(ids)


def _advise(sampling: HyperParameterSampling, total: int, at_once: int) -> None:
    wanted = _RUNS_PER_PARAMETER * sampling.parameter_count
    if total < wanted:
        warn(
            f"max_total_runs={total}: Bayesian sampling of {sampling.parameter_count} parameters needs {wanted} or more"
        )
    if at_once > _BAYESIAN_AT_ONCE:
        warn(f"max_concurrent_runs={at_once}: Bayesian sampling learns less with more than {_BAYESIAN_AT_ONCE} at once")


def _without_sampled(program: BaseEstimator | ScriptRunConfig, job: JobSpec, space: Space) -> JobSpec:
    # An estimator's list comes from script_params, where all words up to the next name belong to one parameter.
    values_each = None if isinstance(program, BaseEstimator) and program.has_script_params else 1
    words, removed = remove_arguments(job.arguments, _argument_names(space), values_each)
    if removed:
        warn(f"{', '.join(removed)} of the script's arguments: ignored, because the sweep samples it")
    return replace(job, arguments=words)


def _argument_names(space: Space) -> set[str]:
    names: set[str] = set()
    for name, node in space.items():
        if isinstance(node, Branches):
            names.update(*(_argument_names(option) for option in node.options))
        else:
            names.add(name)
    return names
