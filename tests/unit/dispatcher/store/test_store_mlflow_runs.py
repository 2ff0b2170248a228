"""Experiments and runs of MLflow in the store, and the messages that are made of them."""

from __future__ import annotations

import json

import pytest

from trainmaster.dispatcher.mlflow.run_messages import RunMessages
from trainmaster.dispatcher.store.mlflow_runs import PARENT, RUN_NAME
from trainmaster.dispatcher.store.search import Search
from trainmaster.shared.filters import parse_filter
from trainmaster.shared.records import RunQuery, Status


def _create(store, run_id="a" * 32, experiment=0, at=100.0, **tags):
    store.mlflow_experiments.create_default(at)
    store.mlflow_runs.create(run_id, experiment, name="first", user="ada", tags={RUN_NAME: "first", **tags}, at=at)
    return store.mlflow_runs.find_head(run_id)


def _message(store, run_id="a" * 32):
    seq = store.mlflow_runs.find_head(run_id).seq
    return json.loads(RunMessages(store).write([seq])[0])


def test_the_default_experiment_is_created_once(store):
    store.mlflow_experiments.create_default(5.0)
    store.mlflow_experiments.create_default(6.0)
    assert store.mlflow_experiments.find(0).created_at == 5.0
    assert store.mlflow_experiments.create("next", {}, "", 7.0).seq == 1
    # A name that v1 has given to an experiment before is left alone.
    store.mlflow_experiments.rename(0, "other", 8.0)
    store.mlflow_experiments.create_default(9.0)
    assert store.mlflow_experiments.find_by_name("Default") is None


def test_a_name_that_is_taken_already(store):
    store.experiments.ensure("Default", 1.0)
    store.mlflow_experiments.create_default(5.0)
    assert store.mlflow_experiments.find(0) is None
    assert store.mlflow_experiments.find_by_name("Default").created_at == 1.0


def test_experiments_are_changed(store):
    made = store.mlflow_experiments.create("x" * 500, {"a": "1"}, "s3://bucket", 5.0)
    assert store.mlflow_experiments.create("x" * 500, {}, "", 6.0) is None
    assert store.mlflow_experiments.create("y", {}, "", 6.0) is not None
    assert not store.mlflow_experiments.rename(made.seq, "y", 7.0)
    assert store.mlflow_experiments.rename(made.seq, "z", 7.0)
    store.mlflow_experiments.set_tag(made.seq, "b", "\U0001f600" * 20_000)
    assert store.mlflow_experiments.remove_tag(made.seq, "a")
    assert not store.mlflow_experiments.remove_tag(made.seq, "a")
    found = store.mlflow_experiments.find(made.seq)
    assert (found.name, found.modified_at, found.artifact_location) == ("z", 7.0, "s3://bucket")
    assert found.tags == {"b": "\U0001f600" * 20_000}


def test_an_experiment_is_deleted_with_its_runs(store):
    head = _create(store)
    assert store.mlflow_experiments.set_archived(0, 200.0, 200.0) == [head.id]
    assert store.runs.find(RunQuery()) == []
    assert _message(store)["info"]["lifecycle_stage"] == "deleted"
    assert store.mlflow_experiments.set_archived(0, None, 201.0) == [head.id]
    assert store.mlflow_experiments.find(0).archived_at is None


def test_parameters_are_written_once_and_found_as_arguments(store):
    head = _create(store)
    assert store.mlflow_runs.log(head, {"lr": "0.5", "net": "n" * 300}, {}) == []
    assert store.mlflow_runs.log(head, {"lr": "0.5", "new": "1"}, {}) == []
    # Nothing of a request with a conflict is kept, not even its tags.
    assert store.mlflow_runs.log(head, {"lr": "1", "other": "2"}, {"tag": "x"}) == [("lr", "0.5", "1")]
    assert store.runs.get(head.id).params == {"lr": "0.5", "net": "n" * 300, "new": "1"}
    assert "tag" not in store.runs.get(head.id).tags
    found = store.search.find(
        Search(condition=parse_filter("argument.lr < 0.6", 0.0), columns=("id", "argument.lr")), 0.0
    )
    assert found.rows == ({"id": head.id, "argument.lr": 0.5},)
    # A list of runs does not read them.
    assert store.runs.find(RunQuery())[0].params == {}


def test_names_that_are_equal_when_they_are_shortened(store):
    head = _create(store)
    store.mlflow_runs.log(head, {"k" * 240 + "1": "first", "k" * 240 + "2": "second"}, {})
    store.mlflow_runs.log(head, {"k" * 240 + "3": "third"}, {})
    assert len(store.runs.get(head.id).params) == 3


def test_tags_that_are_columns(store):
    head = _create(store)
    other = _create(store, "b" * 32)
    store.mlflow_runs.log(head, {}, {RUN_NAME: "second", PARENT: other.id})
    run = store.runs.get(head.id)
    assert (run.display_name, run.parent_id) == ("second", other.id)
    store.mlflow_runs.log(head, {}, {RUN_NAME: ""})
    assert store.runs.get(head.id).tags[RUN_NAME] == "second"
    store.mlflow_runs.log(other, {}, {PARENT: head.id})
    assert store.runs.get(other.id).parent_id is None
    assert store.mlflow_runs.remove_tag(head.seq, RUN_NAME)
    assert not store.mlflow_runs.remove_tag(head.seq, RUN_NAME)
    assert store.runs.get(head.id).display_name == "second"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([("Completed", 5000)], ("FINISHED", 5000)),
        ([("Completed", None)], ("FINISHED", None)),
        ([("Running", 5000)], ("RUNNING", 5000)),
        ([("NotStarted", None)], ("SCHEDULED", None)),
        ([("Completed", -123)], ("FINISHED", -123)),
        ([("Completed", 5000), ("Running", None)], ("RUNNING", 5000)),
        ([("Completed", 5000), ("Running", None), ("Canceled", None)], ("KILLED", 5000)),
        ([("Completed", None), ("Running", None)], ("RUNNING", None)),
        ([("Completed", None), ("Running", None), ("Failed", 7000)], ("FAILED", 7000)),
        ([("Completed", 5000), (None, 6000)], ("FINISHED", 6000)),
        ([("Completed", 5000), (None, 0)], ("FINISHED", None)),
    ],
)
def test_states_and_ends_are_those_of_mlflow(store, changes, expected):
    _create(store)
    for status, end_ms in changes:
        head = store.mlflow_runs.find_head("a" * 32)
        store.mlflow_runs.change(head, status=status and Status(status), end_ms=end_ms, at=300.0)
    info = _message(store)["info"]
    assert (info["status"], info.get("end_time")) == expected
    run = store.runs.get("a" * 32)
    assert (run.ended_at is None) == (expected[0] in ("RUNNING", "SCHEDULED"))


def test_a_message_has_everything_in_it(store, add):
    _create(store, note='"quoted" \u20ac')
    add("job", "exp", Status.RUNNING, spec=json.dumps({"arguments": ["--lr", "0.1"]}), tags={"none": None, "n": 1})
    found = _message(store)
    assert found["info"] == {
        "run_uuid": "a" * 32,
        "experiment_id": "0",
        "run_name": "first",
        "user_id": "ada",
        "status": "RUNNING",
        "start_time": 100_000,
        "artifact_uri": f"mlflow-artifacts:/0/{'a' * 32}/artifacts",
        "lifecycle_stage": "active",
        "run_id": "a" * 32,
    }
    assert found["data"]["tags"] == [
        {"key": RUN_NAME, "value": "first"},
        {"key": "note", "value": '"quoted" \u20ac'},
    ]
    job = _message(store, "job")
    assert job["data"]["params"] == [{"key": "lr", "value": "0.1"}]
    assert job["data"]["tags"] == [{"key": "none", "value": ""}, {"key": "n", "value": "1"}]
    assert job["info"]["run_name"] == "job"


def test_messages_are_in_the_order_of_their_numbers(store):
    heads = [_create(store, f"{number:032x}") for number in range(5)]
    seqs = [head.seq for head in heads][::-1]
    found = [json.loads(text)["info"]["run_id"] for text in RunMessages(store).write([*seqs, 10**9])]
    assert found == [head.id for head in heads][::-1]
