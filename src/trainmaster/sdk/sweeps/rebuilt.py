"""A HyperDriveConfig from the description of an earlier sweep, to inspect or submit again."""

from __future__ import annotations

from inspect import signature

from trainmaster.sdk.environment.definition import Environment
from trainmaster.sdk.estimators.run_configuration import RunConfiguration
from trainmaster.sdk.estimators.script_run_config import ScriptRunConfig
from trainmaster.sdk.sweeps.config import HyperDriveConfig
from trainmaster.shared.job_spec import JobSpec
from trainmaster.tuning.policies import POLICIES, EarlyTerminationPolicy
from trainmaster.tuning.sampling import SAMPLINGS, HyperParameterSampling
from trainmaster.tuning.spec import PolicySpec, SweepSpec


def config_of(spec: SweepSpec) -> HyperDriveConfig:
    """The configuration that `spec` was compiled from, with a ScriptRunConfig instead of an estimator."""
    return HyperDriveConfig(
        _sampling(spec),
        spec.metric,
        spec.goal,
        spec.max_total_runs,
        max_concurrent_runs=spec.max_concurrent_runs,
        max_duration_minutes=spec.max_duration_minutes,
        policy=policy_of(spec.policy),
        run_config=_script(spec.job),
        resume_from=list(spec.resume_from) or None,
        resume_child_runs=list(spec.resume_child_runs) or None,
        max_failures_in_a_row=spec.max_failures_in_a_row,
    )


def _sampling(spec: SweepSpec) -> HyperParameterSampling:
    kind = SAMPLINGS[spec.sampling.kind]
    return kind(spec.space, {name: getattr(spec.sampling, name) for name in kind.OPTIONS})


def policy_of(policy: PolicySpec) -> EarlyTerminationPolicy:
    """The policy that was compiled to `policy`."""
    kind = POLICIES[policy.kind]
    return kind(**{name: getattr(policy, name) for name in signature(kind).parameters})


def _script(job: JobSpec) -> ScriptRunConfig:
    config = RunConfiguration()
    config.target = job.target
    config.node_count = job.node_count
    config.environment = Environment.from_job(job, job.environment_name or "environment")
    if job.command:
        return ScriptRunConfig(job.source_directory, command=list(job.command), run_config=config)
    if job.entry == "module":
        return ScriptRunConfig(
            job.source_directory, arguments=list(job.arguments), run_config=config, module=job.script
        )
    return ScriptRunConfig(job.source_directory, script=job.script, arguments=list(job.arguments), run_config=config)
