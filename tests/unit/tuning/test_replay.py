"""Sweeps that are killed at any point: the same trials, the same decisions, the same end as without."""

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sweeps import MAXIMIZE, MINIMIZE, sweep

from trainmaster.shared.records import Status
from trainmaster.tuning.history import History
from trainmaster.tuning.parameter_expressions import choice, loguniform, uniform
from trainmaster.tuning.planning import SweepState, plan
from trainmaster.tuning.samplers import draw
from trainmaster.tuning.space import flat
from trainmaster.tuning.spec import PolicySpec, SamplingSpec, dump_sweep, load_sweep
from trainmaster.tuning.trial import Trial

SPACES = {
    "random": {"--lr": uniform(0, 1), "--b": choice(1, 2)},
    "grid": {"--lr": choice(0.1, 0.2, 0.3), "--b": choice(1, 2)},
    "bayesian": {"--lr": loguniform(-3, 0), "o": choice({"--m": uniform(0, 1)}, {"--n": 1})},
}
POLICIES = [
    PolicySpec(),
    PolicySpec("bandit", slack_factor=0.1),
    PolicySpec("median", delay_evaluation=2),
    PolicySpec("truncation", 2, truncation_percentage=40),
    PolicySpec("hyperband", reduction_factor=2, brackets=2),
]
REPORTS = 4


class Killed(Exception):
    """The dispatcher died here."""


@dataclass
class World:
    """What outlives a dispatcher: the store, and the trials that run on their own."""

    spec: str
    seed: int
    trials: dict = field(default_factory=dict)
    ending: object = None
    finish: object = None
    lines: dict = field(default_factory=dict)
    started: list = field(default_factory=list)
    time: float = 0.0

    def state(self):
        return SweepState(0.0, History(self.trials.values()), ending=self.ending)

    def tick(self):
        """A random running trial reports or ends; trials to be cancelled are cancelled."""
        self.time += 1.0
        for trial in list(self.trials.values()):
            if trial.status == Status.CANCEL_REQUESTED:
                self.trials[trial.number] = replace(trial, status=Status.CANCELED, ended_at=self.time)
        going = [trial for trial in self.trials.values() if trial.status == Status.RUNNING]
        if going:
            trial = going[draw.number(self.seed, self.time, bits=16) % len(going)]
            self.trials[trial.number] = self.step(trial)

    def step(self, trial):
        fails = draw.unit(self.seed, "fails", trial.number) < 0.2
        if fails and len(trial.values) == 1:
            return replace(trial, status=Status.FAILED, ended_at=self.time)
        if len(trial.values) == REPORTS:
            return replace(trial, status=Status.COMPLETED, ended_at=self.time)
        value = flat(trial.parameters)["--lr"] * (1 + len(trial.values)) + draw.unit(self.seed, trial.number)
        return replace(trial, values=(*trial.values, value))


def carry_out(world, alive):
    """One step of the sweep. `alive` is called before each stored step, and may raise."""
    found = plan(load_sweep(world.spec), world.state(), world.time)
    for each in found.decisions:
        alive()
        status = Status.CANCEL_REQUESTED if each.cut else world.trials[each.number].status
        assert each.interval > world.trials[each.number].judged
        world.trials[each.number] = replace(world.trials[each.number], judged=each.interval, status=status)
        world.lines[each.number, each.interval] = each.words
    if found.ending is not None:
        alive()
        world.ending = found.ending
    for each in found.cancels:
        alive()
        world.trials[each.number] = replace(world.trials[each.number], status=Status.CANCEL_REQUESTED)
    for each in found.starts:
        alive()
        assert each.number not in world.trials
        world.started.append(each.number)
        world.trials[each.number] = Trial(each.number, each.parameters, Status.RUNNING)
    if found.finish is not None:
        alive()
        world.finish = found.finish


def run(spec, seed, kills=frozenset()):
    """The whole sweep; the dispatcher is killed at the given steps and looks again at once."""
    world = World(dump_sweep(spec), seed)
    steps = iter(range(10**6))

    def alive():
        if next(steps) in kills:
            raise Killed

    for _ in range(500):
        for _ in range(len(kills) + 1):
            try:
                carry_out(world, alive)
                break
            except Killed:
                continue
        if world.finish is not None:
            return world
        world.tick()
    raise AssertionError("the sweep does not end")


def sweeps_of(kind, policy, goal, total, at_once):
    return sweep(
        space=SPACES[kind],
        sampling=SamplingSpec(kind, seed=5),
        policy=policy,
        goal=goal,
        max_total_runs=total,
        max_concurrent_runs=at_once,
        max_failures_in_a_row=3,
    )


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    kind=st.sampled_from(["random", "grid"]),
    policy=st.sampled_from(POLICIES),
    goal=st.sampled_from([MAXIMIZE, MINIMIZE]),
    total=st.integers(1, 9),
    at_once=st.integers(1, 4),
    seed=st.integers(0, 10**6),
    kills=st.frozensets(st.integers(0, 60), max_size=20),
)
def test_killed_anywhere_it_is_the_same_sweep(kind, policy, goal, total, at_once, seed, kills):
    check(sweeps_of(kind, policy, goal, total, at_once), seed, kills)


@pytest.mark.parametrize("policy", POLICIES[:2])
@pytest.mark.parametrize("kills", [{0}, {1, 2, 3}, {5, 9, 14, 20}, set(range(0, 40, 3))])
def test_also_with_bayesian_sampling(policy, kills):
    check(sweeps_of("bayesian", policy, MINIMIZE, 14, 2), 3, frozenset(kills))


def check(spec, seed, kills):
    calm, rough = run(spec, seed), run(spec, seed, kills)
    assert rough.trials == calm.trials
    assert rough.finish == calm.finish
    assert rough.lines == calm.lines
    assert len(rough.started) == len(set(rough.started))
    assert all(trial.has_ended for trial in rough.trials.values())
    assert len(rough.trials) <= spec.max_total_runs


@settings(max_examples=40, deadline=None)
@given(at_once=st.integers(1, 4), total=st.integers(1, 9), seed=st.integers(0, 10**6))
def test_never_more_at_once_than_allowed(at_once, total, seed):
    spec = sweeps_of("random", POLICIES[1], MAXIMIZE, total, at_once)
    world = World(dump_sweep(spec), seed)
    for _ in range(500):
        carry_out(world, lambda: None)
        assert sum(not trial.has_ended for trial in world.trials.values()) <= at_once
        if world.finish is not None:
            break
        world.tick()
    assert world.finish is not None
