"""Who gets which nodes, as tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.dispatcher.runs.capacity import MOST_PROCESSES, Request, check_fits, decide
from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared import hardware as machine
from trainmaster.shared.job_spec import Distribution, JobSpec
from trainmaster.shared.records import TargetRecord


def target(name="box", nodes=2):
    return TargetRecord(name, "local", nodes, 1, 0)


def decided(queue, held, *targets):
    requests = [Request(run, name, count) for run, name, count in queue]
    return decide(requests, held, {each.name: each for each in targets})


@pytest.mark.parametrize(
    ("queue", "held", "starts"),
    [
        ([], {}, {}),
        ([("a", "box", 1)], {}, {"a": (0,)}),
        ([("a", "box", 2)], {}, {"a": (0, 1)}),
        ([("a", "box", 1), ("b", "box", 1)], {}, {"a": (0,), "b": (1,)}),
        ([("a", "box", 1)], {"box": {"x": (0,)}}, {"a": (1,)}),
        ([("a", "box", 1)], {"box": {"x": (1,)}}, {"a": (0,)}),
        # The first that does not fit holds back those behind it, else large ones would wait for ever.
        ([("a", "box", 2), ("b", "box", 1)], {"box": {"x": (0,)}}, {}),
        ([("a", "box", 1), ("b", "box", 2), ("c", "box", 1)], {}, {"a": (0,)}),
        # Not on another target.
        ([("a", "box", 2), ("b", "far", 1)], {"box": {"x": (0,)}}, {"b": (0,)}),
        ([("a", "gone", 1), ("b", "box", 1)], {}, {"b": (0,)}),
    ],
)
def test_starts(queue, held, starts):
    assert decided(queue, held, target(), target("far")).starts == starts


@pytest.mark.parametrize(
    ("queue", "held", "nodes", "reason"),
    [
        ([("a", "box", 1)], {"x": (0,)}, 1, "waiting for 1 of 1 node on 'box': run x holds it"),
        ([("a", "box", 2)], {"x": (0,)}, 2, "waiting for 2 of 2 nodes on 'box': run x holds them"),
        ([("a", "box", 1)], {"x": (0,), "y": (1,)}, 2, "waiting for 1 of 2 nodes on 'box': runs x, y hold them"),
        (
            [("a", "box", 1)],
            {name: (n,) for n, name in enumerate("vwxyz")},
            5,
            "waiting for 1 of 5 nodes on 'box': runs v, w, x and 2 more hold them",
        ),
        (
            [("a", "box", 1), ("b", "box", 1)],
            {"x": (0,)},
            1,
            "waiting for 1 of 1 node on 'box': run x holds it (1 run ahead)",
        ),
        (
            [("a", "box", 1), ("b", "box", 1), ("c", "box", 1)],
            {"x": (0,)},
            1,
            "waiting for 1 of 1 node on 'box': run x holds it (2 runs ahead)",
        ),
        ([("a", "box", 3)], {}, 2, "waiting for 3 of 2 nodes on 'box': 'box' has only 2"),
        ([("a", "gone", 1)], {}, 2, "waiting for target 'gone', which does not exist any more"),
    ],
)
def test_reasons(queue, held, nodes, reason):
    assert decided(queue, {"box": held}, target(nodes=nodes)).reasons[queue[-1][0]] == reason


@given(
    st.lists(st.integers(1, 4), max_size=12),
    st.integers(1, 6),
    st.dictionaries(st.text("xyz", min_size=1, max_size=3), st.integers(0, 5), max_size=3),
)
def test_no_node_is_given_twice(counts, nodes, holders):
    held = {run: (node,) for run, node in holders.items()}
    queue = [(f"run-{n}", "box", count) for n, count in enumerate(counts)]
    decision = decided(queue, {"box": held}, target(nodes=nodes))
    given_away = [node for given in decision.starts.values() for node in given]
    assert len(given_away) == len(set(given_away))
    assert not set(given_away) & set(holders.values())
    assert all(0 <= node < nodes for node in given_away)
    assert decision.starts.keys() | decision.reasons.keys() == {run for run, _, _ in queue}
    assert not decision.starts.keys() & decision.reasons.keys()
    # First come, first served: whoever starts came before all who wait.
    assert list(decision.starts) == [run for run, _, _ in queue[: len(decision.starts)]]


def with_gpus(name, nodes, gpus, engine="local"):
    return TargetRecord(name, engine, nodes, 1, gpus)


@pytest.mark.parametrize(
    ("queue", "held", "starts"),
    [
        # `box` has the GPUs 0 and 1, `far` 0 to 3, two on each node.
        ([("a", "far", 1)], {"box": {"x": (0,)}}, {"a": (1,)}),
        ([("a", "far", 1)], {"box": {"x": (0, 1)}}, {"a": (1,)}),
        ([("a", "far", 2)], {"box": {"x": (1,)}}, {}),
        ([("a", "box", 1)], {"far": {"x": (0,)}}, {}),
        ([("a", "box", 2)], {"far": {"x": (1,)}}, {"a": (0, 1)}),
        ([("a", "box", 1), ("b", "far", 1), ("c", "far", 1)], {}, {"a": (0,), "b": (1,)}),
        # One that waits for GPUs gets them before those that came later, on whichever target.
        ([("a", "far", 2), ("b", "box", 1)], {"box": {"x": (0,)}}, {}),
        ([("a", "cpus", 1), ("b", "there", 1)], {"box": {"x": (0, 1)}}, {"a": (0,), "b": (0,)}),
    ],
)
def test_a_gpu_is_given_to_one_run_whatever_the_target(queue, held, starts):
    targets = [with_gpus("box", 2, 1), with_gpus("far", 2, 2), with_gpus("cpus", 1, 0), with_gpus("there", 1, 2, "ssh")]
    assert decided(queue, held, *targets).starts == starts


def test_who_has_the_gpus_is_said():
    targets = with_gpus("box", 1, 1), with_gpus("far", 1, 1)
    decision = decided([("a", "far", 1), ("b", "far", 1)], {"box": {"x": (0,)}}, *targets)
    assert decision.reasons == {
        "a": "waiting for 1 of 1 node on 'far': run x of another target needs its GPUs",
        "b": "waiting for 1 of 1 node on 'far': run x of another target needs its GPUs (1 run ahead)",
    }


def test_nodes_of_one_target_share_gpus_where_it_was_made_so(monkeypatch):
    monkeypatch.setattr(machine, "gpus", lambda: ("0",))
    box = with_gpus("box", 2, 1)
    assert decided([("a", "box", 1), ("b", "box", 1)], {}, box).starts == {"a": (0,), "b": (1,)}


@given(
    st.lists(st.tuples(st.sampled_from(["box", "far", "wide"]), st.integers(1, 3)), max_size=12),
    st.sets(st.integers(0, 11)),
)
def test_no_gpu_is_given_twice_and_everybody_comes_to_run(wanted, ends):
    targets = {each.name: each for each in (with_gpus("box", 3, 1), with_gpus("far", 3, 2), with_gpus("wide", 4, 4))}
    queue = [Request(f"r{n}", name, count) for n, (name, count) in enumerate(wanted)]
    held = {name: {} for name in targets}
    for step in range(100):
        for request in queue[:]:
            decision = decide(queue, held, targets)
            if request.run_id in decision.starts:
                held[request.target][request.run_id] = decision.starts[request.run_id]
                queue.remove(request)
        used = [
            gpu
            for name, runs in held.items()
            for nodes in runs.values()
            for node in nodes
            for gpu in machine.node_gpus(targets[name], node)
        ]
        assert len(used) == len(set(used))
        if not queue:
            return
        for name in held:
            held[name] = {run: nodes for run, nodes in held[name].items() if int(run[1:]) in ends and step % 2}
    raise AssertionError("somebody waits for ever")


def test_what_never_fits():
    spec = JobSpec("/src", "box", script="train.py", node_count=3)
    check_fits(spec, target(nodes=3))
    with pytest.raises(ComputeTargetException, match="node_count=3 can never fit: target 'box' has 2 nodes") as caught:
        check_fits(spec, target(nodes=2))
    assert "--nodes 3" in caught.value.hint


@pytest.mark.parametrize("kind", ["mpi", "torch", "parameter_server"])
def test_a_slip_of_the_pen_is_refused_before_it_is_planned(kind):
    check_fits(gpu_job(MOST_PROCESSES - 5, kind=kind, use_gpu=False), target(nodes=1))
    with pytest.raises(ComputeTargetException, match="processes on one node are too many"):
        check_fits(gpu_job(10**9, kind=kind, use_gpu=False), target(nodes=1))


def gpu_job(processes=1, node_count=1, kind="mpi", **changes):
    counts = {
        "single": {},
        "mpi": {"process_count_per_node": processes},
        "torch": {"process_count": processes * node_count},
        "parameter_server": {"worker_count": processes, "parameter_server_count": 5},
    }
    distribution = Distribution(kind=kind, **counts[kind])
    settings = {"node_count": node_count, "distribution": distribution, "use_gpu": True, **changes}
    return JobSpec("/src", "box", script="train.py", **settings)


def gpu_target(gpus, **options):
    return TargetRecord("box", "local", 2, 1, gpus, options)


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        (gpu_job(3), 3),
        (gpu_job(3, node_count=2), 3),
        (gpu_job(4, kind="torch"), 4),
        (gpu_job(4, node_count=2, kind="torch"), 4),
        (gpu_job(5, node_count=2, kind="parameter_server"), 3),
    ],
)
def test_more_gpus_than_there_ever_are(spec, wanted):
    check_fits(spec, gpu_target(wanted))
    with pytest.raises(ComputeTargetException) as caught:
        check_fits(spec, gpu_target(2))
    assert f"{wanted} processes per node needs {wanted} GPUs per node, but target 'box' has 2" in caught.value.headline
    assert f"--gpus {wanted}" in caught.value.hint
    assert "TRAINMASTER_GPUS" in caught.value.hint


@pytest.mark.parametrize(
    ("spec", "target"),
    [
        (gpu_job(kind="single"), gpu_target(1)),
        (gpu_job(4, use_gpu=False), gpu_target(2)),
        # The run gets a warning instead.
        (gpu_job(4), gpu_target(0)),
        (gpu_job(4), gpu_target(2, doubts=["vm_size 'STANDARD_NC24' has 4 GPUs per node, this machine has 2"])),
        (gpu_job(4, environment_variables={"TRAINMASTER_GPUS": "node"}), gpu_target(2)),
        # Servers need none.
        (gpu_job(2, node_count=2, kind="parameter_server"), gpu_target(1)),
    ],
)
def test_processes_that_have_gpus_enough_or_share_them(spec, target):
    check_fits(spec, target)


def test_a_run_that_took_long_to_prepare_keeps_its_place():
    early, late = Request("early", "box", 1, seq=1), Request("late", "box", 1, seq=2)
    waiting = sorted([late, early], key=lambda each: each.seq)
    assert set(decide(waiting, {"box": {"x": (0,)}}, {"box": target()}).starts) == {"early"}
