"""The tags in which v1 stored the description of a sweep."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from trainmaster.tuning.spec import PolicySpec, SweepSpec

_SYSTEM = "_aml_system_"
_SAMPLINGS = {"random": "RANDOM", "grid": "GRID", "bayesian": "BAYESIANOPTIMIZATION"}
_POLICIES = {
    "none": "Default",
    "bandit": "Bandit",
    "median": "MedianStopping",
    "truncation": "TruncationSelection",
    "hyperband": "Hyperband",
}
_INTERVALS = ("evaluation_interval", "delay_evaluation")
_FIELDS = {
    "none": (),
    "bandit": (*_INTERVALS, "slack_factor", "slack_amount"),
    "median": _INTERVALS,
    "truncation": (*_INTERVALS, "truncation_percentage"),
    "hyperband": ("min_intervals", "reduction_factor", "brackets"),
}


def sweep_tags(spec: SweepSpec) -> dict[str, str]:
    """Name to JSON text; each also under its name with v1's prefix."""
    job = spec.job
    values = {
        "generator_config": {"name": _SAMPLINGS[spec.sampling.kind], "parameter_space": dict(spec.space)},
        "policy_config": _policy(spec.policy),
        "primary_metric_config": {"name": spec.metric, "goal": spec.goal.lower()},
        "max_total_jobs": spec.max_total_runs,
        "max_concurrent_jobs": spec.max_concurrent_runs,
        "max_duration_minutes": spec.max_duration_minutes,
        "platform_config": {"target": job.target, "script": job.script, "arguments": list(job.arguments)},
    }
    texts = {name: json.dumps(value) for name, value in values.items()}
    return {**texts, **{_SYSTEM + name: text for name, text in texts.items()}}


def trial_tags(parameters: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """One tag for each trial: its run id and its parameters."""
    return {run_id: json.dumps(dict(sampled)) for run_id, sampled in parameters.items()}


def _policy(policy: PolicySpec) -> dict[str, Any]:
    values = {name: getattr(policy, name) for name in _FIELDS[policy.kind]}
    properties = {name: value for name, value in values.items() if value is not None}
    return {"name": _POLICIES[policy.kind], "properties": properties}
