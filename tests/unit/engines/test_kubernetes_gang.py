"""What to do next for a gang of pods."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trainmaster.engines.kubernetes.gang import PodState, Step, decide, state_of

MISSING, WAITING, PLACED, RUNNING = PodState.MISSING, PodState.WAITING, PodState.PLACED, PodState.RUNNING
ENDED, LEAVING = PodState.ENDED, PodState.LEAVING
LIMIT = 300.0

states = st.lists(st.sampled_from(PodState), min_size=1, max_size=8)


def pod(phase="Pending", machine="", deleted=False, address="", **status):
    metadata = {"name": "p", **({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleted else {})}
    spec = {"nodeName": machine} if machine else {}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase, "podIP": address, **status}}


def test_states():
    assert state_of(None) is MISSING
    assert state_of(pod()) is WAITING
    assert state_of(pod(machine="a")) is PLACED
    assert state_of(pod("Running", "a")) is PLACED, "a pod without an address cannot be reached"
    assert state_of(pod("Running", "a", address="10.0.0.1")) is RUNNING
    assert state_of(pod("Running", "a", address="10.0.0.1", deleted=True)) is LEAVING
    assert state_of(pod("Failed", "a")) is ENDED
    ended = [{"name": "main", "state": {"terminated": {"exitCode": 137}}}]
    assert state_of(pod("Running", "a", address="10.0.0.1", containerStatuses=ended)) is ENDED


def test_half_a_gang_is_given_back_after_a_while():
    first = decide([RUNNING, WAITING], 10.0, None, LIMIT)
    assert (first.step, first.half_since, first.look_at) == (Step.WAIT, 10.0, 310.0)
    assert decide([PLACED, WAITING], 309.0, first.half_since, LIMIT).step is Step.WAIT
    assert decide([RUNNING, WAITING], 310.0, first.half_since, LIMIT).step is Step.RELEASE


def test_half_a_gang_because_of_a_quota():
    """Some pods exist, others cannot be created: they are tried for a while, then all are given back."""
    first = decide([RUNNING, MISSING], 10.0, None, LIMIT)
    assert (first.step, first.half_since) == (Step.CREATE, 10.0)
    assert decide([RUNNING, MISSING], 310.0, first.half_since, LIMIT).step is Step.RELEASE


def test_the_clock_starts_again_when_all_wait_or_all_have_machines():
    assert decide([WAITING, WAITING], 1e9, 0.0, LIMIT).half_since is None
    assert decide([PLACED, RUNNING], 1e9, 0.0, LIMIT).half_since is None


@given(states, st.floats(0, 1e6), st.none() | st.floats(0, 1e6))
def test_nothing_is_created_beside_pods_that_leave(found, now, since):
    """Names are used again: a new pod must not be taken for an old one."""
    if decide(found, now, since, LIMIT).step is Step.CREATE:
        assert MISSING in found
        assert not {ENDED, LEAVING} & set(found)


@given(states, st.floats(0, 1e6), st.none() | st.floats(0, 1e6))
def test_started_means_that_all_run(found, now, since):
    assert (decide(found, now, since, LIMIT).step is Step.STARTED) == (set(found) == {RUNNING})


@given(states, st.floats(0, 1e6))
def test_no_half_gang_keeps_machines_for_ever(found, now):
    """Whatever the states are, if they never change, all run or none keeps a machine in the end."""
    since = None
    for moment in (now, now + LIMIT, now + 2 * LIMIT):
        decision = decide(found, moment, since, LIMIT)
        since = decision.half_since
        if decision.step is Step.RELEASE:
            return
    kept = {PLACED, RUNNING} & set(found)
    assert not kept or set(found) <= {PLACED, RUNNING}


@given(states, st.floats(0, 1e6))
def test_releasing_ends(found, now):
    """After everything was deleted and is gone, all pods are created."""
    leaving = [LEAVING if state is not MISSING else MISSING for state in found]
    step = decide(leaving, now, None, LIMIT).step
    assert step is (Step.WAIT if LEAVING in leaving else Step.CREATE)
    assert decide([MISSING] * len(found), now, None, LIMIT).step is Step.CREATE
