"""Who gets which nodes, as tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.dispatcher.runs.decisions import Occupation, decide
from trainmaster.dispatcher.runs.quotas import QuotaBook
from trainmaster.dispatcher.runs.waiting import Request
from trainmaster.shared import hardware as machine
from trainmaster.shared.records import Quota, TargetRecord

HALF_FREE = "1st in the queue: waiting for 2 of 2 nodes on 'box', of which 1 is free: run x holds the others"
BOTH_HELD = "1st in the queue: waiting for 1 of 2 nodes on 'box': runs x, y hold them"
TOO_SMALL = "1st in the queue: waiting for 3 of 2 nodes on 'box', of which 2 are free: 'box' has only 2"
NEEDS_GPUS = "waiting for 1 of 1 node on 'far', of which 1 is free: run x of another target needs its GPUs"


def target(name="box", nodes=2):
    return TargetRecord(name, "local", nodes, 1, 0)


def decided(queue, held, *targets):
    requests = [Request(run, name, count) for run, name, count in queue]
    return decide(requests, Occupation({each.name: each for each in targets}, held))


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
        ([("a", "box", 1)], {"x": (0,)}, 1, "1st in the queue: waiting for 1 of 1 node on 'box': run x holds it"),
        ([("a", "box", 2)], {"x": (0,)}, 2, HALF_FREE),
        ([("a", "box", 1)], {"x": (0,), "y": (1,)}, 2, BOTH_HELD),
        (
            [("a", "box", 1)],
            {name: (n,) for n, name in enumerate("vwxyz")},
            5,
            "1st in the queue: waiting for 1 of 5 nodes on 'box': runs v, w, x and 2 more hold them",
        ),
        (
            [("a", "box", 1), ("b", "box", 1)],
            {"x": (0,)},
            1,
            "2nd in the queue: waiting for 1 of 1 node on 'box': run x holds it",
        ),
        (
            [("a", "box", 1), ("b", "box", 1), ("c", "box", 1)],
            {"x": (0,)},
            1,
            "3rd in the queue: waiting for 1 of 1 node on 'box': run x holds it",
        ),
        ([("a", "box", 3)], {}, 2, TOO_SMALL),
        ([("a", "gone", 1)], {}, 2, "waiting for target 'gone', which does not exist any more"),
    ],
)
def test_reasons(queue, held, nodes, reason):
    assert decided(queue, {"box": held}, target(nodes=nodes)).reasons[queue[-1][0]] == reason


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
        "a": f"1st in the queue: {NEEDS_GPUS}",
        "b": f"2nd in the queue: {NEEDS_GPUS}",
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
            decision = decide(queue, Occupation(targets, held))
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


def test_a_run_that_took_long_to_prepare_keeps_its_place():
    late, early = Request("late", "box", 1, seq=2), Request("early", "box", 1, seq=1)
    now = Occupation({"box": target()}, {"box": {"x": (0,)}})
    assert set(decide([late, early], now).starts) == {"early"}


HOUR = 3600.0


def request(run_id, nodes=1, hours=None, **more):
    return Request(run_id, "box", nodes, seconds=None if hours is None else hours * HOUR, **more)


def started(queue, held, nodes=4, ends=None, **more):
    now = Occupation({"box": target(nodes=nodes)}, {"box": held}, ends=ends or {})
    return list(decide(queue, now, **more).starts)


@pytest.mark.parametrize(
    ("queue", "order"),
    [
        ([request("a", seq=1), request("b", seq=2)], "ab"),
        ([request("a", seq=1), request("b", seq=2, priority=1)], "ba"),
        ([request("a", seq=1), request("b", seq=2, priority=-1)], "ab"),
        # A point is worth an hour of waiting, so that nobody waits for ever.
        ([request("a", seq=1), request("b", seq=2, priority=1, submitted_at=HOUR - 1)], "ba"),
        ([request("a", seq=1), request("b", seq=2, priority=1, submitted_at=HOUR)], "ab"),
        ([request("a", seq=1), request("b", seq=2, priority=100, submitted_at=101 * HOUR)], "ab"),
        # The runs of a user who has used much come later; among themselves they keep their order.
        ([request("a", seq=1, user="ann"), request("b", seq=2, user="bob")], "ba"),
        ([request("a", seq=1, user="ann"), request("b", seq=2, user="ann", priority=1)], "ba"),
        ([request("a", seq=1, user="ann", priority=3), request("b", seq=2, user="bob")], "ab"),
    ],
)
def test_order(queue, order):
    assert started(queue, {}, penalties={"ann": 2 * HOUR}) == list(order)


@pytest.mark.parametrize(
    ("behind", "ends", "starts"),
    [
        # The first run wants 3 of 4 nodes; x and y hold one each.
        ([request("small")], {}, []),
        ([request("small", hours=1)], {}, []),
        ([request("small", hours=1)], {"x": 2 * HOUR}, ["small"]),
        ([request("small", hours=1), request("next", hours=1)], {"x": 2 * HOUR}, ["small", "next"]),
        ([request("small", hours=1), request("third", nodes=2, hours=1)], {"x": 2 * HOUR}, ["small"]),
        ([request("too long", hours=2)], {"x": 2 * HOUR}, []),
        ([request("no limit")], {"x": 2 * HOUR}, []),
        ([request("too large", nodes=3, hours=1)], {"x": 2 * HOUR}, []),
        # A run that is late may end at any moment.
        ([request("small", hours=1)], {"x": -HOUR}, []),
    ],
)
def test_small_runs_start_first_if_that_delays_nobody(behind, ends, starts):
    queue = [request("first", nodes=3), *behind]
    assert started(queue, {"x": (0,), "y": (1,)}, ends=ends) == starts


def test_nodes_that_the_first_run_does_not_need_whichever_run_ends_are_free_for_all():
    # When x ends, three nodes are free, and the first run wants two.
    queue = [request("first", nodes=2), request("small"), request("next")]
    assert started(queue, {"x": (0, 1, 2)}) == ["small"]
    # When y ends, no node is left over.
    queue = [request("first", nodes=3), request("small")]
    assert started(queue, {"x": (0, 1, 2), "y": (3,)}, nodes=6) == []


def test_a_run_that_can_never_start_holds_back_nobody():
    assert started([request("first", nodes=5), request("small")], {"x": (0,)}) == ["small"]


def test_a_run_does_not_take_the_quota_that_the_first_one_waits_for():
    quotas = QuotaBook({"ann": Quota("ann", nodes=6)})
    queue = [request("first", nodes=2, user="ann"), request("small", user="ann"), request("other", user="bob")]
    now = Occupation({"box": target(nodes=4)}, {"box": {"x": (0, 1, 2)}}, {"x": "ann"})
    assert list(decide(queue, now, quotas).starts) == ["small"]
    quotas = QuotaBook({"ann": Quota("ann", nodes=5)})
    assert list(decide(queue, now, quotas).starts) == ["other"]


def test_who_has_used_more_is_told():
    queue = [request("a", user="ann"), request("b", user="bob")]
    now = Occupation({"box": target(nodes=1)}, {"box": {"x": (0,)}})
    decision = decide(queue, now, penalties={"ann": HOUR})
    assert decision.reasons == {
        "b": "1st in the queue: waiting for 1 of 1 node on 'box': run x holds it",
        "a": "2nd in the queue: waiting for 1 of 1 node on 'box': run x holds it; "
        "user 'ann' has used more than an equal share",
    }


@pytest.mark.parametrize(
    ("at", "fewest", "held", "nodes"),
    [
        (99.0, 2, {"x": (0,)}, ()),
        (100.0, 2, {"x": (0,)}, (1, 2, 3)),
        (100.0, 2, {"x": (0, 2)}, (1, 3)),
        (100.0, 2, {"x": (0, 2, 3)}, ()),
        (0.0, 2, {}, (0, 1, 2, 3)),
    ],
)
def test_an_elastic_run_starts_with_fewer_nodes_after_a_while(at, fewest, held, nodes):
    queue = [Request("a", "box", 4, min_nodes=fewest, fewer_at=100.0)]
    decision = decide(queue, Occupation({"box": target(nodes=4)}, {"box": held}), at=at)
    assert decision.starts.get("a", ()) == nodes


def test_an_elastic_run_that_waits_says_how_many_nodes_it_needs():
    queue = [Request("a", "box", 4, min_nodes=2, fewer_at=100.0)]
    now = Occupation({"box": target(nodes=4)}, {"box": {"x": (0, 1, 2)}})
    assert "waiting for 4 of 4 nodes" in decide(queue, now, at=0.0).reasons["a"]
    assert "waiting for 2 of 4 nodes" in decide(queue, now, at=100.0).reasons["a"]


def test_an_elastic_run_takes_the_nodes_that_its_quota_leaves():
    quotas = QuotaBook({"ann": Quota("ann", nodes=3)})
    queue = [Request("a", "box", 4, user="ann", min_nodes=2, fewer_at=0.0)]
    now = Occupation({"box": target(nodes=6)}, {"box": {}}, {})
    assert decide(queue, now, quotas, at=1.0).starts == {"a": (0, 1, 2)}


def test_an_elastic_run_behind_the_first_takes_what_that_does_not_need():
    first, fewer = request("first", nodes=3), Request("a", "box", 4, seq=9, submitted_at=9.0, min_nodes=1, fewer_at=0.0)
    now = Occupation({"box": target(nodes=5)}, {"box": {"x": (0, 1, 2)}})
    assert decide([first, fewer], now, at=10.0).starts == {"a": (3, 4)}
    now = Occupation({"box": target(nodes=4)}, {"box": {"x": (0, 1), "y": (2,)}})
    assert decide([first, fewer], now, at=10.0).starts == {}
