"""What holds for every queue: no node twice, nobody delayed, nobody forgotten."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from trainmaster.dispatcher.runs.backfill import Holding, latest_end, reserve
from trainmaster.dispatcher.runs.decisions import Occupation, decide
from trainmaster.dispatcher.runs.fair_share import MOST_SECONDS, RecentUse, find_penalties
from trainmaster.dispatcher.runs.waiting import Request, WaitingRuns
from trainmaster.shared.records import NodeUse, TargetRecord

NODES = 6
BOX = TargetRecord("box", "ssh", NODES, 1, 0)
HOUR = 3600.0

limits = st.one_of(st.none(), st.integers(1, 9).map(lambda hours: hours * HOUR))
users = st.sampled_from(["ann", "bob", "cid"])
wishes = st.tuples(st.integers(1, NODES), limits, users, st.integers(-3, 3))
# The fewest nodes of an elastic run, and from when on they are enough.
elastic = st.one_of(st.none(), st.tuples(st.integers(1, NODES), st.sampled_from([-HOUR, 0.0, HOUR])))


def make_queue(found):
    queue = []
    for n, ((nodes, seconds, user, priority), fewer) in enumerate(found):
        request = Request(f"r{n}", "box", nodes, n, user, priority, n * 60.0, seconds)
        if fewer is not None:
            request = replace(request, min_nodes=min(fewer[0], nodes), fewer_at=fewer[1])
        queue.append(request)
    return queue


queues = st.lists(st.tuples(wishes, elastic), max_size=10).map(make_queue)
penalties = st.dictionaries(users, st.floats(0, MOST_SECONDS))


@st.composite
def occupations(draw, has_ends=None):
    free, held, ends = list(range(NODES)), {}, {}
    for number in range(draw(st.integers(0, 4))):
        count = draw(st.integers(0, len(free)))
        if count:
            held[f"h{number}"], free = tuple(free[:count]), free[count:]
            if has_ends if has_ends is not None else draw(st.booleans()):
                ends[f"h{number}"] = draw(st.integers(-2, 12)) * HOUR
    return Occupation({"box": BOX}, {"box": held}, dict.fromkeys(held, "ann"), ends)


def after(now, decision, queue):
    """The occupation once the runs of a decision have started, and the runs that still wait."""
    by_id = {request.run_id: request for request in queue}
    held = {**now.held["box"], **decision.starts}
    ends = {run: latest_end(0.0, by_id[run].seconds) for run in decision.starts if by_id[run].seconds is not None}
    waiting = [request for request in queue if request.run_id not in decision.starts]
    return replace(now, held={"box": held}, ends={**now.ends, **ends}), waiting


def holdings(now):
    return [Holding(len(nodes), now.ends.get(run, math.inf)) for run, nodes in now.held["box"].items()]


def free(now):
    return NODES - sum(len(nodes) for nodes in now.held["box"].values())


def split(queue, decision, later):
    """The first run that waits, and those that started before it although they came later."""
    order = list(WaitingRuns(queue).iterate(later))
    first = next((n for n, request in enumerate(order) if request.run_id not in decision.starts), len(order))
    overtaking = [request.run_id for request in order[first:] if request.run_id in decision.starts]
    return (order[first] if first < len(order) else None), overtaking


@given(queues, occupations(), penalties)
def test_no_node_is_given_twice_and_every_run_starts_or_has_a_reason(queue, now, later):
    decision = decide(queue, now, penalties=later)
    given_away = [node for nodes in decision.starts.values() for node in nodes]
    assert len(given_away) == len(set(given_away)) and set(given_away) <= set(range(NODES))
    assert not set(given_away) & {node for nodes in now.held["box"].values() for node in nodes}
    for each in queue:
        if each.run_id in decision.starts:
            assert each.least_nodes(0.0) <= len(decision.starts[each.run_id]) <= each.node_count
    assert decision.starts.keys() | decision.reasons.keys() == {each.run_id for each in queue}
    assert not decision.starts.keys() & decision.reasons.keys()


@given(queues, occupations(), penalties, st.randoms())
def test_the_decision_depends_on_nothing_else(queue, now, later, random):
    decision = decide(queue, now, penalties=later)
    shuffled = random.sample(queue, len(queue))
    assert decide(shuffled, now, penalties=later).starts == decision.starts
    then, waiting = after(now, decision, queue)
    assert decide(waiting, then, penalties=later).starts == {}


@given(queues, occupations(), penalties)
def test_nobody_delays_the_reservation_of_the_first(queue, now, later):
    decision = decide(queue, now, penalties=later)
    first, overtaking = split(queue, decision, later)
    if first is None:
        return
    then, _ = after(now, decision, queue)
    without = replace(then, held={"box": {run: n for run, n in then.held["box"].items() if run not in overtaking}})
    before = reserve(first.least_nodes(0.0), free(without), holdings(without), 0.0)
    assert reserve(first.least_nodes(0.0), free(then), holdings(then), 0.0).at <= before.at


@given(queues, occupations(has_ends=False), penalties, st.randoms())
def test_without_time_limits_the_first_is_never_delayed_whichever_runs_end(queue, now, later, random):
    queue = [replace(request, seconds=None) for request in queue]
    decision = decide(queue, now, penalties=later)
    first, overtaking = split(queue, decision, later)
    if first is None:
        return
    then, _ = after(now, decision, queue)
    ending = [run for run in then.held["box"] if run not in overtaking]
    random.shuffle(ending)
    blocking = sum(len(then.held["box"][run]) for run in overtaking)
    room = NODES - sum(len(nodes) for nodes in then.held["box"].values())
    for run in ending:
        room += len(then.held["box"][run])
        # As soon as it would have had its nodes without the others, it has them.
        wanted = first.least_nodes(0.0)
        assert (room + blocking >= wanted) == (room >= wanted)


@given(queues, occupations(), penalties)
def test_an_elastic_run_has_fewer_nodes_only_after_its_time_and_if_no_more_are_free(queue, now, later):
    decision = decide(queue, now, penalties=later)
    then, _ = after(now, decision, queue)
    first, _ = split(queue, decision, later)
    for each in queue:
        nodes = decision.starts.get(each.run_id, ())
        if nodes and len(nodes) < each.node_count:
            assert each.min_nodes is not None and each.fewer_at <= 0.0
            # Nobody waits: then no node is left that it could have had.
            assert first is not None or not free(then)


@given(queues, occupations(), penalties)
def test_who_is_content_with_fewer_nodes_starts_no_later(queue, now, later):
    order = list(WaitingRuns(queue).iterate(later))
    if not order:
        return
    first = order[0]
    others = queue[: first.seq], queue[first.seq + 1 :]
    content = replace(first, min_nodes=1, fewer_at=0.0)
    strict = replace(first, min_nodes=None)
    has_started = first.run_id in decide([*others[0], strict, *others[1]], now, penalties=later).starts
    starts = decide([*others[0], content, *others[1]], now, penalties=later).starts
    assert first.run_id in starts if has_started or free(now) else first.run_id not in starts


@given(st.integers(0, 12), occupations())
def test_equal_runs_start_in_the_order_of_submission(count, now):
    queue = [Request(f"r{n}", "box", 1, n, "ann", 0, n * 60.0, HOUR) for n in range(count)]
    starts = list(decide(queue, now).starts)
    assert starts == [request.run_id for request in queue[: free(now)]]


@given(st.lists(wishes, max_size=5), penalties)
@settings(max_examples=20, deadline=None)
def test_everybody_comes_to_run(found, later):
    """Even if a run of the highest rank arrives whenever a node is returned."""
    waiting, held, at = WaitingRuns(), {}, 0.0
    for number, (nodes, seconds, user, priority) in enumerate(found):
        waiting.add(Request(f"r{number}", "box", nodes, number, user, priority, 0.0, seconds))
    left = {f"r{number}" for number in range(len(found))}
    for number in range(200):
        if not left:
            return
        waiting.add(Request(f"new{number}", "box", 1, 100 + number, "dan", 3, at))
        starts = decide(waiting, Occupation({"box": BOX}, {"box": held}), penalties=later, at=at).starts
        for run, nodes in starts.items():
            waiting.remove(run)
            held[run] = nodes
        left -= starts.keys()
        held.pop(next(iter(held)))
        at += 6 * HOUR
    raise AssertionError(f"{left} wait for ever")


def test_use_counts_half_after_a_week():
    use = RecentUse([NodeUse("ann", 2, 0.0, 100.0), NodeUse("bob", 1, 0.0, 100.0)])
    assert use.count(["ann", "bob"], [], 100.0) == {"ann": 200.0, "bob": 100.0}
    week = 100.0 + 7 * 86400
    assert use.count(["ann", "cid"], [NodeUse("cid", 3, week - 10, week)], week) == {"ann": 100.0, "cid": 30.0}
    # The order in which runs are counted makes no difference.
    use.add(NodeUse("ann", 1, week - 50, week))
    late = RecentUse([NodeUse("ann", 1, week - 50, week), NodeUse("ann", 2, 0.0, 100.0)])
    assert use.count(["ann"], [], week) == late.count(["ann"], [], week) == {"ann": 150.0}


@given(st.dictionaries(users, st.floats(0, 1e9), max_size=3))
def test_penalties_are_limited_and_rise_with_use(used):
    found = find_penalties(used)
    assert all(0 < seconds < MOST_SECONDS for seconds in found.values())
    ordered = sorted(used, key=lambda user: used[user])
    seconds = [found.get(user, 0.0) for user in ordered]
    assert seconds == sorted(seconds)
    # Somebody is always within the share.
    assert not used or len(found) < len(used)
