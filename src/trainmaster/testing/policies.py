"""What every early termination policy and every sampler of sweeps must do, as tests to inherit.

    from trainmaster.testing import PolicyConformance, SamplerConformance

    class TestMyPolicy(PolicyConformance):
        @pytest.fixture
        def policy(self):
            return MyPolicy(patience=3)

    class TestMySampler(SamplerConformance):
        @pytest.fixture
        def sampling(self):
            return MySampling({"--lr": uniform(0.1, 0.9)}, properties={"seed": 7})

Both are pure: a sweep whose dispatcher was killed continues with the same decisions and the same trials.
"""

from __future__ import annotations

import copy
import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from trainmaster.shared.job_spec import JobSpec
from trainmaster.shared.records import Status
from trainmaster.shared.serialization import from_plain, to_plain
from trainmaster.tuning.decisions import decide
from trainmaster.tuning.goal import PrimaryMetricGoal
from trainmaster.tuning.policies import EarlyTerminationPolicy
from trainmaster.tuning.samplers import Observation, next_parameters
from trainmaster.tuning.samplers.observation import Outcome
from trainmaster.tuning.sampling import HyperParameterSampling
from trainmaster.tuning.space import Branches, Constant, Leaf, Node, Parameters, Space, read_space
from trainmaster.tuning.spec import PolicySpec, SamplingSpec, SweepSpec
from trainmaster.tuning.trial import Decision, Trial

_MAXIMIZE, _MINIMIZE = PrimaryMetricGoal.MAXIMIZE, PrimaryMetricGoal.MINIMIZE
_GOALS = (_MAXIMIZE, _MINIMIZE)
_OPPOSITE = {_MAXIMIZE: _MINIMIZE, _MINIMIZE: _MAXIMIZE}
_UNDER_WAY = (Status.RUNNING, Status.FINALIZING, Status.CANCEL_REQUESTED)
_HISTORIES = 200
_TRIALS = 12


class PolicyConformance:
    """Inherit this and define the fixture `policy`."""

    @pytest.fixture
    def spec(self, policy: EarlyTerminationPolicy) -> PolicySpec:
        """The policy as plain data."""
        return policy.compile()

    def test_it_is_plain_data(self, spec: PolicySpec) -> None:
        """A sweep keeps its policy as JSON."""
        assert from_plain(PolicySpec, json.loads(json.dumps(to_plain(spec)))) == spec

    def test_it_is_pure(self, spec: PolicySpec) -> None:
        """The same trials give the same decisions."""
        for goal, trials in _histories():
            assert decide(spec, goal, trials) == decide(spec, goal, copy.deepcopy(trials))

    def test_it_decides_nothing_twice(self, spec: PolicySpec) -> None:
        """After its decisions are kept with the trials, there is nothing to decide until a new report arrives."""
        for goal, trials in _histories():
            decisions = decide(spec, goal, trials)
            assert decide(spec, goal, _apply(trials, decisions)) == []

    def test_it_judges_only_running_trials(self, spec: PolicySpec) -> None:
        """Trials that have ended or are being cancelled are compared with, but not judged."""
        for goal, trials in _histories():
            judged = {decision.number for decision in decide(spec, goal, trials)}
            assert judged <= {trial.number for trial in trials if trial.can_be_cut}

    def test_intervals(self, spec: PolicySpec) -> None:
        """A trial is judged at reports that it has made and that were not judged before, and never after a cut."""
        for goal, trials in _histories():
            decisions = decide(spec, goal, trials)
            for trial in trials:
                own = [decision for decision in decisions if decision.number == trial.number]
                intervals = [decision.interval for decision in own]
                assert intervals == sorted(set(intervals))
                assert all(trial.judged < interval <= len(trial.values) for interval in intervals)
                assert not any(decision.cut for decision in own[:-1])

    def test_the_best_trial_continues(self, spec: PolicySpec) -> None:
        """The trial that is best at an interval is not cut there."""
        for goal, trials in _histories():
            by_number = {trial.number: trial for trial in trials}
            for decision in decide(spec, goal, trials):
                peers = [trial for trial in trials if len(trial.values) >= decision.interval]
                assert not decision.cut or by_number[decision.number] is not _best(goal, peers, decision.interval)

    def test_a_single_trial_continues(self, spec: PolicySpec) -> None:
        """A trial is not cut while there is no other one to compare it with."""
        for goal in _GOALS:
            for values in ((1.0,) * 30, tuple(map(float, range(30))), (math.nan,) * 30):
                decisions = decide(spec, goal, [Trial(0, {}, Status.RUNNING, values)])
                assert not any(decision.cut for decision in decisions)

    def test_the_goal_only_turns_the_order(self, spec: PolicySpec) -> None:
        """Maximizing a metric and minimizing its negative give the same cuts."""
        for goal, trials in _histories():
            mirrored = [replace(trial, values=tuple(-value for value in trial.values)) for trial in trials]
            assert _cuts(decide(spec, goal, trials)) == _cuts(decide(spec, _OPPOSITE[goal], mirrored))

    def test_reasons(self, spec: PolicySpec) -> None:
        """Each decision says in one line which trial and interval it is about."""
        for goal, trials in _histories():
            for decision in decide(spec, goal, trials):
                assert f"interval {decision.interval}" in decision.words and f"run_{decision.number}" in decision.words
                assert "\n" not in decision.words


class SamplerConformance:
    """Inherit this and define the fixture `sampling`."""

    @pytest.fixture
    def sweep(self, sampling: HyperParameterSampling) -> SweepSpec:
        """A sweep that uses the sampler."""
        return SweepSpec(
            JobSpec("", "local", script="train.py"),
            sampling.parameter_space,
            "accuracy",
            _MAXIMIZE,
            max_total_runs=_TRIALS,
            max_concurrent_runs=2,
            sampling=sampling.compile(),
        )

    def test_it_is_plain_data(self, sweep: SweepSpec) -> None:
        """A sweep keeps its sampling and its parameters as JSON."""
        assert from_plain(SamplingSpec, json.loads(json.dumps(to_plain(sweep.sampling)))) == sweep.sampling
        for parameters in _sample(sweep):
            assert json.loads(json.dumps(parameters)) == parameters

    def test_it_is_pure(self, sweep: SweepSpec) -> None:
        """The same seed, number and observations give the same parameters, and observations stay as they are."""
        observations = _observe(_sample(sweep))
        before = copy.deepcopy(observations)
        for index in range(len(observations), len(observations) + 3):
            found = next_parameters(sweep, index, observations)
            assert found == next_parameters(copy.deepcopy(sweep), index, copy.deepcopy(observations))
        assert observations == before

    def test_values_are_in_the_space(self, sweep: SweepSpec) -> None:
        """Every parameter of the space has a value that its expression allows, and there are no others."""
        space = read_space(sweep.space)
        for parameters in _sample(sweep):
            assert _fits_space(space, parameters), parameters

    def test_trials_in_every_state(self, sweep: SweepSpec) -> None:
        """Trials that run, failed, or reported no usable number do not disturb it."""
        space, sampled = read_space(sweep.space), list(_sample(sweep))
        states: list[tuple[Outcome, float | None]] = [("going", None), ("failed", None)]
        states += [("ended", value) for value in (None, math.nan, math.inf)]
        for outcome, value in states:
            observations = [Observation(parameters, outcome, value) for parameters in sampled]
            found = next_parameters(sweep, len(sampled), observations)
            assert found is None or _fits_space(space, found)

    def test_an_exhausted_space_stays_so(self, sweep: SweepSpec) -> None:
        """After the last combination there are no more."""
        found = [next_parameters(sweep, index, []) for index in range(_TRIALS)]
        first = found.index(None) if None in found else len(found)
        assert found[first:] == [None] * (len(found) - first)


def _histories() -> Iterator[tuple[PrimaryMetricGoal, list[Trial]]]:
    """Sweeps at some moment, always the same: trials of all states, with ties, NaN and negative values."""
    generator = random.Random(20)
    for _ in range(_HISTORIES):
        goal = generator.choice(_GOALS)
        yield goal, [_trial(generator, number) for number in range(generator.randint(1, _TRIALS))]


def _trial(generator: random.Random, number: int) -> Trial:
    count = generator.randint(0, 12)
    level, spread = generator.choice((-2.0, 0.0, 0.5, 100.0)), generator.choice((0.0, 0.1, 10.0))
    values = [round(level + spread * generator.random(), 2) for _ in range(count)]
    if count and generator.random() < 0.2:
        values[generator.randrange(count)] = math.nan
    status = generator.choice((Status.RUNNING, Status.RUNNING, *_UNDER_WAY, Status.COMPLETED, Status.CANCELED))
    return Trial(number, {}, status, tuple(values), judged=generator.randint(0, count))


def _apply(trials: Sequence[Trial], decisions: Sequence[Decision]) -> list[Trial]:
    """The trials as a sweep keeps them after these decisions."""
    judged = {decision.number: decision.interval for decision in decisions}
    cut = {decision.number for decision in decisions if decision.cut}
    return [
        replace(
            trial,
            judged=judged.get(trial.number, trial.judged),
            status=Status.CANCEL_REQUESTED if trial.number in cut else trial.status,
        )
        for trial in trials
    ]


def _cuts(decisions: Sequence[Decision]) -> list[tuple[int, int, bool]]:
    return [(decision.number, decision.interval, decision.cut) for decision in decisions]


def _best(goal: PrimaryMetricGoal, peers: Sequence[Trial], interval: int) -> Trial:
    """The best trial at an interval; of equal ones the first."""
    sign = 1 if goal == _MAXIMIZE else -1
    return max(peers, key=lambda trial: (sign * trial.best(goal, interval), -trial.number))


def _sample(sweep: SweepSpec) -> Iterator[Parameters]:
    """The first trials, each sampled with the observations of those before it."""
    sampled: list[Parameters] = []
    for index in range(_TRIALS):
        parameters = next_parameters(sweep, index, _observe(sampled))
        if parameters is None:
            return
        yield parameters
        sampled.append(parameters)


def _observe(sampled: Iterator[Parameters] | Sequence[Parameters]) -> list[Observation]:
    return [Observation(parameters, "ended", index / 10) for index, parameters in enumerate(sampled)]


def _fits_space(space: Space, parameters: Any) -> bool:
    return (
        isinstance(parameters, Mapping)
        and set(parameters) == set(space)
        and all(_fits(node, parameters[name]) for name, node in space.items())
    )


def _fits(node: Node, value: Any) -> bool:
    if isinstance(node, Constant):
        return bool(value == node.value)
    if isinstance(node, Branches):
        return any(_fits_space(option, value) for option in node.options)
    return _fits_leaf(node, value)


def _fits_leaf(leaf: Leaf, value: Any) -> bool:
    kind, arguments = leaf.kind, leaf.arguments
    if kind == "choice":
        return value in leaf.options
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return False
    if kind == "randint":
        return value in range(arguments[0])
    if kind.startswith("q") and value % arguments[2]:
        return False
    if kind.endswith("normal"):
        return not kind.endswith("lognormal") or value >= 0
    # Rounding to a multiple may lead a little outside.
    margin = arguments[2] if kind.startswith("q") else 0.0
    low, high = map(math.exp, arguments[:2]) if kind.endswith("loguniform") else arguments[:2]
    slack = margin + 1e-9 * max(abs(low), abs(high))
    return bool(low - slack <= value <= high + slack)
