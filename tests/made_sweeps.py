"""Sweeps to be shown."""

import math

from trainmaster.shared.job_spec import JobSpec
from trainmaster.shared.records import Status
from trainmaster.tuning.goal import PrimaryMetricGoal
from trainmaster.tuning.parameter_expressions import choice, loguniform, normal, qloguniform, uniform
from trainmaster.tuning.samplers import next_parameters
from trainmaster.tuning.spec import PolicySpec, SamplingSpec, SweepSpec
from trainmaster.tuning.trial import Decision, Trial
from trainmaster.tuning.view import sweep_view, trial_view

NOW = 2000.0
SPACE = {
    "--lr": loguniform(-9, -1),
    "--batch-size": choice(16, 32, 64, 128),
    "--optimizer": choice("sgd", "adam", "rmsprop"),
    "--dropout": uniform(0, 0.6),
    "--hidden": qloguniform(2, 6, 1),
    "--layers": choice(range(1, 5)),
    "--decay": loguniform(-14, -4),
    "--momentum": normal(0.9, 0.03),
}


def sweep_of(count, parameters=3, going=0, total=None, space=None, **changes):
    """A sweep of `count` trials: every seventh cut, every eleventh failed, the last `going` running."""
    spec = SweepSpec(
        job=JobSpec("/project", "local", script="train.py"),
        space=space or dict(list(SPACE.items())[:parameters]),
        metric="accuracy",
        goal=PrimaryMetricGoal.MAXIMIZE,
        max_total_runs=total or max(1, count),
        max_concurrent_runs=4,
        sampling=SamplingSpec("random", seed=1),
        policy=PolicySpec("bandit", slack_factor=0.1),
    )
    trials = [_trial(spec, number, number >= count - going) for number in range(count)]
    status = Status.RUNNING if going else Status.COMPLETED
    settings = {"started_at": 1000.0, "ended_at": None if going else 1900.0, **changes}
    return sweep_view(spec, "digits_1", settings.pop("experiment", "digits"), status, trials, **settings)


def _trial(spec, number, going):
    parameters = next_parameters(spec, number, [])
    top = 0.9 - 0.01 * (math.log(parameters.get("--lr", 0.01)) + 5) ** 2
    values = tuple(top * (1 - math.exp(-(epoch + 1) / 3)) for epoch in range(9))
    status, cut, error = Status.COMPLETED, None, ""
    if going:
        status, values = Status.RUNNING, values[:3]
    elif number % 7 == 6:
        status, values = Status.CANCELED, values[:4]
        cut = Decision(number, 4, True, f"interval 4: run_{number} best 0.1 < 0.9/(1+0.1) = 0.818: cancelled")
    elif number % 11 == 10:
        status, values, error = Status.FAILED, (), "rank 0 exited with code 1: ValueError: no\x1b[31m data"
    began = 1000.0 + 10 * number
    trial = Trial(number, parameters, status, values, ended_at=None if going else began + 10.0, error=error)
    return trial_view(spec.goal, trial, f"digits_1_{number}", began, cut)
