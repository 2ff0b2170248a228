"""What the tests of sweeps share."""

from trainmaster.shared.job_spec import JobSpec
from trainmaster.tuning.goal import PrimaryMetricGoal
from trainmaster.tuning.parameter_expressions import choice, uniform
from trainmaster.tuning.spec import SamplingSpec, SweepSpec

MAXIMIZE, MINIMIZE = PrimaryMetricGoal.MAXIMIZE, PrimaryMetricGoal.MINIMIZE


def sweep(**changes):
    """A sweep that could run, but for what a test changes."""
    settings = {
        "job": JobSpec("/project", "local", script="train.py"),
        "space": {"--lr": uniform(0.1, 0.9), "--batch": choice(16, 32)},
        "metric": "accuracy",
        "goal": MAXIMIZE,
        "max_total_runs": 6,
        "max_concurrent_runs": 2,
        "sampling": SamplingSpec("random", seed=7),
        **changes,
    }
    return SweepSpec(**settings)
