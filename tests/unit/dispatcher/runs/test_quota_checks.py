"""Quotas: what may start, what is said to a run that waits, and that others are not held back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.dispatcher.runs.decisions import Occupation, decide
from trainmaster.dispatcher.runs.quotas import QuotaBook, Use, check_quotas
from trainmaster.dispatcher.runs.waiting import Request
from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.records import EACH_USER, WHOLE_WORKSPACE, Quota, TargetRecord

BOX = TargetRecord("box", "ssh", 8, 1, 2)
FAR = TargetRecord("far", "slurm", 8, 1, 0)
TARGETS = {"box": BOX, "far": FAR}


def book(*quotas, **disk_use):
    return QuotaBook({quota.owner: quota for quota in quotas}, disk_use)


def decided(queue, quotas, held=None, users=None):
    requests = [Request(run, target, count, user=user) for run, user, target, count in queue]
    return decide(requests, Occupation(TARGETS, held or {}, users or {}, queue_themselves={"far"}), quotas)


A, B = ("a", "ann", "box", 1), ("b", "ann", "box", 1)


@pytest.mark.parametrize(
    ("quotas", "reason"),
    [
        (book(Quota("ann", runs=1)), "waiting for the quota of user 'ann': 1 of 1 active run in use"),
        (book(Quota("ann", nodes=1)), "waiting for the quota of user 'ann': 1 of 1 node in use, it needs 1"),
        (book(Quota("ann", gpus=3)), "waiting for the quota of user 'ann': 2 of 3 GPUs in use, it needs 2"),
        (book(Quota(EACH_USER, runs=1)), "waiting for the quota of user 'ann': 1 of 1 active run in use"),
        (book(Quota(WHOLE_WORKSPACE, runs=1)), "waiting for the quota of the workspace: 1 of 1 active run in use"),
        (
            book(Quota(EACH_USER, runs=1), Quota("ann", nodes=1)),
            "waiting for the quota of user 'ann': 1 of 1 node in use, it needs 1",
        ),
    ],
)
def test_a_waiting_run_says_which_quota_it_waits_for(quotas, reason):
    decision = decided([A, B], quotas)
    assert decision.starts == {"a": (0,)} and decision.reasons == {"b": reason}


def test_a_quota_holds_back_nobody_else():
    queue = [A, B, ("c", "bob", "box", 1), ("d", "ann", "far", 1)]
    decision = decided(queue, book(Quota("ann", runs=1)))
    assert decision.starts == {"a": (0,), "c": (1,)}
    assert decision.reasons["d"].endswith("(1 run ahead)")


def test_a_large_run_is_not_overtaken_by_smaller_ones_of_its_user():
    queue = [("a", "ann", "box", 3), ("large", "ann", "box", 2), ("small", "ann", "box", 1)]
    assert decided(queue, book(Quota("ann", nodes=4))).starts == {"a": (0, 1, 2)}
    # One that does not need what the large one waits for goes on.
    queue = [("a", "ann", "box", 1), ("large", "ann", "box", 2), ("cpu", "ann", "far", 1)]
    assert decided(queue, book(Quota("ann", gpus=4))).starts == {"a": (0,), "cpu": (0,)}


def test_runs_that_hold_nodes_are_counted():
    held, users = {"box": {"x": (0, 1)}, "far": {"y": (0,)}, "gone": {"z": (0,)}}, {"x": "ann", "y": "bob", "z": "ann"}
    assert not decided([A], book(Quota("ann", runs=2)), held, users).starts
    assert not decided([A], book(Quota("ann", nodes=3)), held, users).starts
    assert not decided([A], book(Quota(WHOLE_WORKSPACE, gpus=5)), held, users).starts
    assert decided([A], book(Quota("ann", runs=3, nodes=4, gpus=6)), held, users).starts


def test_runs_without_a_user_are_counted_once():
    queue = [("a", "", "box", 1), ("b", "", "box", 1), ("c", "", "box", 1)]
    assert list(decided(queue, book(Quota(WHOLE_WORKSPACE, runs=2))).starts) == ["a", "b"]
    assert list(decided(queue, book(Quota(EACH_USER, runs=1), Quota(WHOLE_WORKSPACE, runs=2))).starts) == ["a"]


def test_disk():
    quotas = book(Quota("ann", disk_bytes=2**30), Quota(WHOLE_WORKSPACE, disk_bytes=5 * 2**30), ann=2**30, bob=2**30)
    decision = decided([A, ("c", "bob", "box", 1)], quotas)
    assert decision.starts == {"c": (0,)}
    assert decision.reasons["a"].startswith("waiting for the disk quota of user 'ann': 1.0 GB of 1.0 GB are used")
    full = book(Quota(WHOLE_WORKSPACE, disk_bytes=2**30), ann=6 * 2**27, bob=2**28)
    assert "disk quota of the workspace" in decided([("d", "dan", "far", 1)], full).reasons["d"]


def test_a_run_that_can_never_start_is_refused():
    for quota in (Quota("ann", nodes=1), Quota(EACH_USER, gpus=3), Quota(WHOLE_WORKSPACE, runs=0)):
        with pytest.raises(ComputeTargetException, match="allows"):
            check_quotas(book(quota), Use("ann", 2, 4))
    check_quotas(book(Quota("ann", runs=1, nodes=2, gpus=4), Quota("bob", nodes=0)), Use("ann", 2, 4))


def test_how_many_runs_are_allowed_at_once():
    assert book().count_allowed(Use("ann", 2, 4)) is None
    assert book(Quota("ann", nodes=5), Quota(WHOLE_WORKSPACE, gpus=9)).count_allowed(Use("ann", 2, 4)) == 2
    assert book(Quota("ann", gpus=0)).count_allowed(Use("ann", 2, 0)) is None


LIMIT = st.none() | st.integers(0, 6)
QUOTAS = st.lists(
    st.builds(Quota, st.sampled_from(["ann", "bob", EACH_USER, WHOLE_WORKSPACE]), LIMIT, LIMIT, LIMIT), max_size=4
)
QUEUE = st.lists(
    st.tuples(st.sampled_from(["ann", "bob", "cem"]), st.sampled_from(["box", "far"]), st.integers(1, 3)), max_size=12
)


@given(QUOTAS, QUEUE)
def test_no_quota_is_ever_exceeded_and_without_quotas_nothing_changes(quotas, wanted):
    queue = [(f"run-{n}", user, target, count) for n, (user, target, count) in enumerate(wanted)]
    limits = book(*quotas)
    decision = decided(queue, limits)
    assert decision.starts.keys() | decision.reasons.keys() == {run for run, *_ in queue}
    assert not decision.starts.keys() & decision.reasons.keys()
    started = [each for each in queue if each[0] in decision.starts]
    for user in ("ann", "bob", "cem"):
        for quota in limits.list_for(user):
            mine = [each for each in started if quota.owner == WHOLE_WORKSPACE or each[1] == user]
            assert quota.runs is None or len(mine) <= quota.runs
            assert quota.nodes is None or sum(count for *_, count in mine) <= quota.nodes
            gpus = sum(count * TARGETS[target].gpus_per_node for _, _, target, count in mine)
            assert quota.gpus is None or gpus <= quota.gpus
    without = decided(queue, None)
    if not limits.quotas:
        assert decision == without
    # Whoever waits for a quota waits for one that exists.
    for run, user, *_ in queue:
        if "quota" in decision.reasons.get(run, ""):
            assert list(limits.list_for(user))


@given(QUOTAS, QUEUE)
def test_everybody_comes_to_run_once_the_others_have_ended(quotas, wanted):
    limits = book(*quotas)
    queue = []
    for n, (user, target, count) in enumerate(wanted):
        try:
            check_quotas(limits, Use(user, count, count * TARGETS[target].gpus_per_node))
        except ComputeTargetException:
            continue
        queue.append((f"run-{n}", user, target, count))
    for _ in range(len(queue)):
        decision = decided(queue, limits)
        assert decision.starts or not queue
        queue = [each for each in queue if each[0] not in decision.starts]
    assert not queue
