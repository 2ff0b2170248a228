from __future__ import annotations

import threading
from dataclasses import fields, replace

import pytest

from trainmaster.dispatcher.store import Store
from trainmaster.job.errors import RunNotFoundException, UserErrorException
from trainmaster.shared.records import SUCCESSORS, TERMINAL, RunError, RunRecord, Status

FULL = RunRecord(
    id="run_1",
    experiment="exp",
    status=Status.FAILED,
    created_at=1.5,
    type="hyperdrive",
    display_name="größe 😀",
    description="line\nline",
    target="local",
    spec='{"version": 1}',
    snapshot_id="abc",
    started_at=2.5,
    ended_at=3.5,
    waiting_for="a node",
    nodes=(0, 3),
    error=RunError("UserError", "it broke", {"rank": 1, "tail": "…\n"}),
    warnings=("careful",),
    submitted_by="someone",
    tags={"a": "1", "b": None, "c": 5},
    properties={"p": "q"},
)


def test_a_run_comes_back_as_it_went_in(store):
    kept = store.runs.add(FULL)
    assert kept == replace(FULL, seq=1, number=1)
    assert store.runs.get("run_1") == kept
    assert store.runs.get_many(["run_1"]) == [kept]


def test_records_are_made_with_every_field(store, add):
    add()
    for record in (store.runs.get("run"), store.runs.list_active()[0]):
        assert set(vars(record)) == {field.name for field in fields(RunRecord)}
        assert record == replace(record) and hash(record.id)


def test_records_do_not_share_their_labels(store, add):
    add("a")
    add("b")
    a, b = store.runs.list_active()
    assert a.tags is not b.tags and a.properties is not b.properties


def test_a_run_is_numbered_within_its_experiment(store, add):
    numbers = [add(f"r{n}", experiment).number for n, experiment in enumerate(["x", "y", "x", "x", "y"])]
    assert numbers == [1, 1, 2, 3, 2]
    assert [run.seq for run in store.runs.list_active()] == [1, 2, 3, 4, 5]


def test_inserting_again_changes_nothing(store, add):
    first = add("same", display_name="first", tags={"a": 1})
    assert add("same", display_name="second", tags={"b": 2}) == first
    assert add("next").number == 2


def test_several_are_inserted_all_or_none(store):
    good = RunRecord("good", "exp", Status.QUEUED, 1.0)
    orphan = RunRecord("orphan", "exp", Status.QUEUED, 1.0, parent_id="nobody")
    with pytest.raises(RunNotFoundException, match="nobody"):
        store.runs.add_many([good, orphan])
    assert store.runs.get("good") is None
    assert [run.number for run in store.runs.add_many([good, replace(good, id="other")])] == [1, 2]


def test_runs_are_given_in_the_order_asked_for(store):
    store.runs.add_many(RunRecord(f"r{n}", "exp", Status.QUEUED, 1.0) for n in range(1200))
    asked = [f"r{n}" for n in range(1199, -1, -1)]
    assert [run.id for run in store.runs.get_many([*asked[:5], "nobody", *asked[5:]])] == asked


def test_active_runs_are_oldest_first_with_their_specs(store, add):
    add("old", spec="{1}")
    add("done", status=Status.COMPLETED)
    add("new", status=Status.QUEUED, spec="{2}")
    assert [(run.id, run.spec) for run in store.runs.list_active()] == [("old", "{1}"), ("new", "{2}")]


@pytest.mark.parametrize("before", Status)
def test_moves_follow_the_table_of_states(store, before):
    store.runs.add_many(RunRecord(to, "exp", before, 100.0) for to in Status)
    for to in Status:
        was, moved = store.runs.get(to), store.runs.move(to, to, at=200.0)
        if to in SUCCESSORS[before]:
            assert moved is not None and moved == store.runs.get(to) and moved.status is to
            assert (moved.ended_at == 200.0) == (to in TERMINAL)
            assert moved.started_at == (200.0 if to is Status.RUNNING else None)
        else:
            assert moved is None and store.runs.get(to) == was


def test_a_move_sets_what_belongs_to_it(store, add):
    add(status=Status.QUEUED, waiting_for="node 1")
    assert store.runs.move("run", Status.STARTING, at=1.0, nodes=(1, 2), waiting_for="").nodes == (1, 2)
    assert store.runs.move("run", Status.RUNNING, at=2.0, started_at=1.5).started_at == 1.5
    error = RunError("UserError", "rank 1 ended with exit code 3", {"rank": 1})
    ended = store.runs.move("run", Status.FAILED, at=9.0, error=error, warnings=["w"])
    assert (ended.error, ended.warnings, ended.started_at, ended.ended_at) == (error, ("w",), 1.5, 9.0)


def test_a_move_can_expect_a_state(store, add):
    add(status=Status.RUNNING)
    assert store.runs.move("run", Status.COMPLETED, expect=[Status.FINALIZING], at=1.0) is None
    assert store.runs.move("run", Status.COMPLETED, expect=[], at=1.0) is None
    assert store.runs.move("run", Status.COMPLETED, expect=[Status.RUNNING], at=1.0) is not None


def test_a_run_that_is_not_there_cannot_move(store):
    with pytest.raises(RunNotFoundException, match="nobody"):
        store.runs.move("nobody", Status.RUNNING, at=1.0)


def test_only_one_of_many_ends_a_run(store, add):
    add()
    ways = [Status.COMPLETED, Status.FAILED, Status.CANCELED] * 4
    winners = []
    threads = [threading.Thread(target=lambda to=to: winners.append(store.runs.move("run", to, at=1.0))) for to in ways]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = [run for run in winners if run is not None]
    assert store.runs.get("run") == winner


def test_fields_beside_the_state_change(store, add):
    add()
    changed = store.runs.update("run", display_name="n", description="d", nodes=[1], waiting_for="w")
    assert changed == store.runs.get("run")
    assert (changed.display_name, changed.description, changed.nodes, changed.waiting_for) == ("n", "d", (1,), "w")


@pytest.mark.parametrize("field", ["status", "seq", "id", "ended_at", "nonsense"])
def test_other_fields_do_not(store, add, field):
    add()
    with pytest.raises(UserErrorException, match=field):
        store.runs.update("run", **{field: "x"})


def test_warnings_are_added_once(store, add):
    add()
    store.runs.add_warnings("run", "a", "b")
    store.runs.add_warnings("run", "b", "c")
    assert store.runs.get("run").warnings == ("a", "b", "c")
    store.runs.add_warnings("run", *map(str, range(1000)))
    assert len(store.runs.get("run").warnings) == 100


def test_everything_is_there_after_opening_again(store, add, database):
    kept = add(tags={"t": 1})
    store.close()
    again = Store.open(database)
    assert again.runs.get("run") == kept
    again.close()


def test_a_clock_that_is_set_back_gives_no_negative_duration(store, add):
    add("job", status=Status.QUEUED)
    store.runs.move("job", Status.STARTING, at=150.0)
    store.runs.move("job", Status.RUNNING, at=200.0)
    assert store.runs.move("job", Status.COMPLETED, at=50.0).ended_at == 200.0
    add("trial", status=Status.STARTING)
    assert store.journals.finish_run("trial", Status.COMPLETED, at=50.0, started_at=300.0).ended_at == 300.0
    add("idle", status=Status.QUEUED)
    assert store.runs.move("idle", Status.CANCELED, at=50.0).ended_at == 100.0
