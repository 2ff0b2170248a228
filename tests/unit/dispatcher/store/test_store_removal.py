"""Runs are removed with all that was kept of them, and nothing of others."""

import pytest
from sqlalchemy import func, select

from trainmaster.dispatcher.store import schema
from trainmaster.job.errors import UserErrorException
from trainmaster.shared.job_spec import JobSpec
from trainmaster.shared.records import ModelRecord, RunQuery, RunRecord, Status, TrialRecord
from trainmaster.tuning.goal import PrimaryMetricGoal
from trainmaster.tuning.spec import SweepSpec, dump_sweep

TABLES = (
    "runs",
    "run_specs",
    "run_labels",
    "metrics",
    "metric_points",
    "metric_blocks",
    "journals",
    "sweeps",
    "trials",
)


def counted(store):
    with store._database.read() as connection:
        return {
            name: connection.execute(select(func.count()).select_from(schema.metadata.tables[name])).scalar_one()
            for name in TABLES
        }


def fill(store, run_id, points=200):
    records = [{"k": "metric", "n": name, "v": n, "t": 1.0} for name in ("loss", "rate") for n in range(points)]
    assert store.journals.ingest(run_id, "0-1.jsonl", 0, 10, records)
    store.runs.set_tags(run_id, {"phase": "2"})
    store.runs.add_properties(run_id, {"made": "so"})


@pytest.fixture
def sweep(store):
    """A sweep with three trials; a trial has a child."""
    spec = SweepSpec(JobSpec("/code", "local"), {}, "loss", PrimaryMetricGoal.MINIMIZE, 3, 1, resume_from=("older",))
    store.sweeps.add(RunRecord("s", "exp", Status.RUNNING, 1.0, type="hyperdrive", spec="{}"), dump_sweep(spec))
    store.sweeps.add_trials(
        "s",
        [
            (TrialRecord(n, f"s_{n}", {}), RunRecord(f"s_{n}", "exp", Status.COMPLETED, 2.0, parent_id="s", spec="{}"))
            for n in range(3)
        ],
    )
    store.runs.add(RunRecord("s_1_child", "exp", Status.COMPLETED, 3.0, parent_id="s_1"))
    for run_id in ("s", "s_0", "s_1_child"):
        fill(store, run_id)
    return [run_id for run_id, _ in store.removal.list_family("s")]


def test_a_family_is_removed_whole_and_others_stay(store, add, sweep):
    add("other", status=Status.COMPLETED, spec="{}")
    fill(store, "other")
    others = {"runs": 1, "run_specs": 1, "run_labels": 2, "metrics": 2, "metric_points": 400, "metric_blocks": 6}
    assert sweep == ["s", "s_0", "s_1", "s_2", "s_1_child"]
    rounds = 1
    while store.removal.delete_points(sweep, most=150):
        rounds += 1
    # No transaction takes more than so many points with it.
    assert rounds == 9
    store.removal.delete_runs(sweep[::-1])
    assert counted(store) == {**others, "journals": 1, "sweeps": 0, "trials": 0}
    assert [run.id for run in store.runs.find(RunQuery(include_children=True))] == ["other"]
    assert store.removal.list_family("s") == []


def test_numbers_of_runs_are_not_given_again(store, add):
    assert [add(run_id, status=Status.COMPLETED).number for run_id in ("a", "b")] == [1, 2]
    store.removal.delete_runs(["b"])
    assert add("c").number == 3


def test_an_experiment_whose_runs_are_gone_can_go(store, add):
    add("a", status=Status.COMPLETED)
    with pytest.raises(UserErrorException, match="has runs"):
        store.experiments.delete("exp")
    store.removal.delete_runs(["a"])
    store.experiments.delete("exp")
    assert store.experiments.get("exp") is None


def test_what_is_still_needed(store, add, sweep):
    one, two, three = ("1" * 64, "2" * 64, "3" * 64)
    add("a", status=Status.COMPLETED, snapshot_id=one)
    for key, run_id, snapshot in (("k1", "gone", two), ("k2", "a", three)):
        store.models.register(ModelRecord("net", key, "m", "net", run_id=run_id, lineage={"snapshot_id": snapshot}))
    assert store.removal.find_needed_snapshots() == {one, two, three}
    assert store.removal.find_runs_with_models() == {"gone", "a"}
    store.models.delete("net", 2)
    assert store.removal.find_needed_snapshots() == {one, two}
    assert store.removal.find_runs_with_models() == {"gone"}
    assert store.removal.find_continued_runs() == {"older"}
    store.runs.move("s", Status.COMPLETED, at=9.0)
    assert store.removal.find_continued_runs() == set()
