from __future__ import annotations

import pytest

from trainmaster.dispatcher.store import Store
from trainmaster.shared.records import RunQuery, RunRecord, Status


def ids(store: Store, **query) -> list[str]:
    return [run.id for run in store.runs.find(RunQuery(**query))]


@pytest.fixture
def family(add):
    add("a", tags={"stage": "dev", "n": 5, "bare": None}, properties={"p": "1"})
    add("b", experiment="other", status=Status.COMPLETED, tags={"stage": "prod"})
    add("a1", parent_id="a", tags={"stage": "dev"})
    add("a2", parent_id="a", status=Status.FAILED, type="hyperdrive")
    add("a11", parent_id="a1", target="gpu")
    add("c", target="gpu", properties={"p": "1", "q": "True"}, spec="{}")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, "c b a"),
        ({"include_children": True}, "c a11 a2 a1 b a"),
        ({"experiment": "exp"}, "c a"),
        ({"experiment": "exp", "include_children": True}, "c a11 a2 a1 a"),
        ({"experiment": "nobody"}, ""),
        ({"parent_id": "a"}, "a2 a1"),
        ({"parent_id": "a", "recursive": True}, "a11 a2 a1"),
        ({"parent_id": "nobody", "recursive": True}, ""),
        ({"type": "hyperdrive", "include_children": True}, "a2"),
        ({"target": "gpu", "include_children": True}, "c a11"),
        ({"statuses": ("Failed", "Completed"), "include_children": True}, "a2 b"),
        ({"statuses": (Status.RUNNING,), "include_children": True}, "c a11 a1 a"),
        ({"statuses": ("Nonsense",)}, ""),
        ({"tags": {"stage": "dev"}}, "a"),
        ({"tags": {"stage": "dev"}, "include_children": True}, "a1 a"),
        ({"tags": {"stage": None}, "include_children": True}, "a1 b a"),
        ({"tags": {"bare": None}}, "a"),
        ({"tags": {"n": "5"}}, "a"),
        ({"tags": {"n": 5, "stage": "dev"}}, "a"),
        ({"tags": {"n": 5, "stage": "prod"}}, ""),
        ({"properties": {"p": "1"}}, "c a"),
        ({"properties": {"p": 1, "q": True}}, "c"),
        ({"properties": {"p": None}, "tags": {"stage": "dev"}}, "a"),
        ({"limit": 2}, "c b"),
        ({"limit": 0}, ""),
        ({"limit": 2, "before_seq": 2}, "a"),
        ({"tags": {"stage": "dev"}, "include_children": True, "before_seq": 3}, "a"),
        ({"parent_id": "a", "recursive": True, "experiment": "exp", "tags": {"stage": "dev"}}, "a1"),
    ],
)
def test_queries(store, family, query, expected):
    assert ids(store, **query) == expected.split()


def test_a_list_leaves_the_spec_out_and_nothing_else(store, family):
    (listed,) = store.runs.find(RunQuery(limit=1))
    whole = store.runs.get("c")
    assert (listed.spec, whole.spec) == ("", "{}")
    assert {**vars(listed), "spec": "{}"} == vars(whole)


def test_pages_join_without_gap_while_runs_arrive(store, add):
    for n in range(10):
        add(f"r{n}")
    seen, before = [], None
    for page in range(5):
        runs = store.runs.find(RunQuery(limit=3, before_seq=before))
        add(f"late{page}")
        seen += [run.id for run in runs]
        before = runs[-1].seq if runs else before
    assert seen == [f"r{n}" for n in range(9, -1, -1)]


def test_deep_families_are_listed(store, add):
    add("r0")
    store.runs.add_many(RunRecord(f"r{n}", "exp", Status.RUNNING, 1.0, parent_id=f"r{n - 1}") for n in range(1, 300))
    assert len(ids(store, parent_id="r0", recursive=True, limit=1000)) == 299
