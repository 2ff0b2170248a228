"""Elastic runs on Kubernetes: when they start with fewer pods than they ask for."""

from __future__ import annotations

import asyncio
import time

import pytest

from trainmaster.engines import FewerNodesError
from trainmaster.engines.kubernetes.gang import Decision, Elasticity, Step, decide, decide_elastic, state_of
from trainmaster.engines.kubernetes.gang_control import Gang, elasticity_of
from trainmaster.engines.kubernetes.pod_watch import PodWatch
from trainmaster.engines.kubernetes.pods import names_of
from trainmaster.engines.kubernetes.watch import Event
from trainmaster.shared.job_spec import Distribution, JobSpec

RUNS = {"spec": {"nodeName": "m"}, "status": {"phase": "Running", "podIP": "10.0.0.1"}}
PLACED = {"spec": {"nodeName": "m"}, "status": {"phase": "Pending"}}
NEW = {"spec": {}, "status": {"phase": "Pending"}}
ENDED = {"spec": {"nodeName": "m"}, "status": {"phase": "Failed"}}
REFUSED = {
    "spec": {},
    "status": {
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
    },
}
# Kueue has not admitted it.
GATED = {
    "spec": {},
    "status": {
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}],
    },
}


def decide_for(pods, now, fewest=2, at=100.0, half_since=None, gang_seconds=300.0):
    decision = decide([state_of(pod) for pod in pods], now, half_since, gang_seconds)
    return decide_elastic(decision, pods, Elasticity(fewest, at), now)


@pytest.mark.parametrize(
    ("pods", "step"),
    [
        ([RUNS, RUNS, REFUSED], Step.FEWER),
        ([RUNS, PLACED, REFUSED], Step.FEWER),
        ([RUNS, RUNS, RUNS], Step.STARTED),
        ([RUNS, PLACED, PLACED], Step.WAIT),
        # Too few have a machine.
        ([RUNS, REFUSED, REFUSED], Step.WAIT),
        # The scheduler has not looked at it, or waits for a queue.
        ([RUNS, RUNS, NEW], Step.WAIT),
        ([RUNS, RUNS, GATED], Step.WAIT),
        ([RUNS, RUNS, None], Step.CREATE),
        ([RUNS, ENDED, REFUSED], Step.RELEASE),
    ],
)
def test_after_the_time(pods, step):
    assert decide_for(pods, now=100.0).step is step


def test_before_the_time():
    """The run waits for all its pods, and looks again in time."""
    decision = decide_for([RUNS, RUNS, REFUSED], now=99.0)
    assert (decision.step, decision.look_at) == (Step.WAIT, 100.0)
    early = decide_for([RUNS, RUNS, REFUSED], now=99.0, half_since=90.0, gang_seconds=9.5)
    assert early.look_at == 99.5, "half a gang is given back earlier"


def test_it_starts_rather_than_giving_all_back():
    assert decide_for([RUNS, RUNS, REFUSED], now=400.0, half_since=0.0) == Decision(Step.FEWER)


def test_which_runs_are_elastic():
    spec = JobSpec("", "t", node_count=3)
    assert elasticity_of(spec) is None
    elastic = elasticity_of(JobSpec("", "t", node_count=3, distribution=Distribution("torch", min_nodes=2)))
    assert elastic is not None and elastic.fewest == 2 and elastic.at > time.monotonic() + 200


class Namespace:
    """Takes the place of a namespace in which pods get these states."""

    workspace = "w"

    def __init__(self, names, states):
        self.pods = PodWatch(None, "")  # type: ignore[arg-type]
        self.pods.start = lambda: None
        self.deleted = []
        found = zip(names.pods, states, strict=True)
        self.pods._handle(Event("reset", tuple({**state, "metadata": {"name": name}} for name, state in found)))

    async def delete_pods(self, names):
        self.deleted += names
        for name in names:
            self.pods._handle(Event("deleted", (self.pods.get(name),)))

    async def list_events(self, name):
        return []


def assemble(states, has_begun=lambda: False):
    names = names_of("r", 1, len(states), "w")
    namespace = Namespace(names, states)
    elasticity = Elasticity(2, time.monotonic())
    gang = Gang(namespace, names, None, 300.0, has_begun=has_begun, elasticity=elasticity)  # type: ignore[arg-type]
    try:
        asyncio.run(asyncio.wait_for(gang.assemble(), 60))
    finally:
        assert namespace.deleted == list(names.pods)
    return gang


def test_all_pods_are_given_up_before_fewer_are_created():
    """The names of those that have a machine have gaps, and plans know how many there are."""
    with pytest.raises(FewerNodesError) as caught:
        assemble([RUNS, REFUSED, RUNS])
    assert caught.value.count == 2


def test_pods_that_began_meanwhile_are_lost_like_those_of_a_run():
    answers = iter([False, True])
    gang = assemble([RUNS, RUNS, REFUSED], has_begun=lambda: next(answers, True))
    assert not gang.is_released, "their end says something about the run"
