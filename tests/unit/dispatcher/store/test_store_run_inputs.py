"""What runs have read and made."""

from sqlalchemy import func, select

from trainmaster.dispatcher.store import schema
from trainmaster.dispatcher.store.run_inputs import CONTEXT, DatasetInput, DatasetUse, InputDataset, ModelOutput
from trainmaster.dispatcher.store.statements import PreparedSelect
from trainmaster.shared.records import Status

IRIS = InputDataset("iris", "d1", "local", "/iris.csv", "columns", "150 rows")
DIGITS = InputDataset("digits", "d2", "local", "/digits.csv")


def count(store, table):
    with store._database.read() as connection:
        return connection.execute(select(func.count()).select_from(schema.metadata.tables[table])).scalar_one()


def link(store, add, run_id="run", **fields):
    seq = add(run_id, **fields).seq
    found = store.run_inputs.find_run(run_id)
    assert found is not None and found.seq == seq
    return found


def test_a_dataset_is_kept_once_per_experiment(store, add):
    first, second = link(store, add, "a"), link(store, add, "b")
    elsewhere = link(store, add, "c", experiment="other")
    for run in (first, second, elsewhere):
        store.run_inputs.add(run, [DatasetInput(IRIS, {CONTEXT: "training"})])
    assert count(store, "input_datasets") == 2
    found = store.run_inputs.read([first.seq, second.seq, elsewhere.seq])
    assert [links.datasets for links in found.values()] == [(DatasetInput(IRIS, {CONTEXT: "training"}),)] * 3


def test_what_was_said_first_stays(store, add):
    run = link(store, add)
    store.run_inputs.add(run, [DatasetInput(IRIS, {CONTEXT: "training", "half": "1"})], ["m-1"])
    changed = InputDataset("iris", "d1", "http", "https://elsewhere")
    store.run_inputs.add(run, [DatasetInput(changed, {CONTEXT: "test"}), DatasetInput(DIGITS, {})], ["m-1", "m-0"])
    found = store.run_inputs.read([run.seq])[run.seq]
    assert found.datasets == (DatasetInput(IRIS, {CONTEXT: "training", "half": "1"}), DatasetInput(DIGITS, {}))
    assert found.models_in == ("m-0", "m-1") and found.models_out == ()


def test_outputs_are_added_all_or_none(store, add):
    run = link(store, add)
    assert store.run_inputs.add_outputs(run, [ModelOutput("m-2", 5), ModelOutput("m-1")]) is None
    assert store.run_inputs.add_outputs(run, [ModelOutput("m-3"), ModelOutput("m-1", 7)]) == "m-1"
    assert store.run_inputs.add_outputs(run, [ModelOutput("m-4"), ModelOutput("m-4")]) == "m-4"
    assert store.run_inputs.read([run.seq])[run.seq].models_out == (ModelOutput("m-1"), ModelOutput("m-2", 5))


def test_a_page_of_runs_takes_two_queries(store, add, monkeypatch):
    runs = [link(store, add, f"run{number}") for number in range(100)]
    for run in runs:
        store.run_inputs.add(run, [DatasetInput(IRIS, {}), DatasetInput(DIGITS, {})], ["m-1"])
    asked = []
    rows = PreparedSelect.rows
    monkeypatch.setattr(PreparedSelect, "rows", lambda *given, **values: asked.append(1) or rows(*given, **values))
    found = store.run_inputs.read([run.seq for run in runs])
    assert len(found) == 100 and all(len(links.datasets) == 2 for links in found.values())
    assert len(asked) == 2


def test_uses_of_datasets(store, add):
    run, other = link(store, add), link(store, add, "other", experiment="other")
    store.run_inputs.add(run, [DatasetInput(IRIS, {CONTEXT: "training"}), DatasetInput(DIGITS, {})])
    store.run_inputs.add(other, [DatasetInput(IRIS, {CONTEXT: "test"})])
    here = str(run.experiment_seq)
    uses = [DatasetUse(here, "digits", "d2", None), DatasetUse(here, "iris", "d1", "training")]
    assert store.run_inputs.list_uses([run.experiment_seq], 10) == uses
    assert store.run_inputs.list_uses([run.experiment_seq, other.experiment_seq], 1) == uses[:1]


def test_they_are_removed_with_the_run(store, add):
    run, other = link(store, add, status=Status.COMPLETED, ended_at=2.0), link(store, add, "other")
    store.run_inputs.add(run, [DatasetInput(IRIS, {}), DatasetInput(DIGITS, {})], ["m-1"])
    store.run_inputs.add(other, [DatasetInput(IRIS, {})])
    store.run_inputs.add_outputs(run, [ModelOutput("m-1")])
    store.removal.delete_runs(["run"])
    assert store.run_inputs.read([run.seq]) == {}
    assert count(store, "input_datasets") == count(store, "run_inputs") == 1 and count(store, "run_models") == 0
