"""Logged models: what is kept of them, and finding them."""

import math

import pytest
from sqlalchemy import func, select

from trainmaster.dispatcher.store import schema
from trainmaster.dispatcher.store.logged_model_search import DatasetFilter, ModelOrder, ModelQuery
from trainmaster.dispatcher.store.logged_models import PENDING, READY, LoggedModel, ModelMetric
from trainmaster.job.errors import UserErrorException
from trainmaster.shared.filters.clauses import Clause
from trainmaster.shared.records import Status


@pytest.fixture
def experiment(store, add):
    add("run", status=Status.COMPLETED, ended_at=2.0)
    return store.run_inputs.find_run("run").experiment_seq


@pytest.fixture
def create(store, experiment):
    def insert(model_id, **fields):
        fields = {"name": model_id.removeprefix("m-"), "created_ms": 1000, "modified_ms": 1000, **fields}
        return store.logged_models.create(LoggedModel(model_id, str(experiment), **fields))

    return insert


def log(store, model_id, value, time_ms=1, step=0, name="acc", dataset=(None, None), run_id="run"):
    metric = ModelMetric(name, value, time_ms, step, run_id, *dataset)
    return store.logged_models.add_metrics(store.run_inputs.find_run(run_id).seq, [(model_id, metric)])


def count(store, table):
    with store._database.read() as connection:
        return connection.execute(select(func.count()).select_from(schema.metadata.tables[table])).scalar_one()


def test_a_model_is_read_as_it_was_created(store, create):
    made = create("m-1", type="agent", source_run_id="run", params={"z": "1", "a": "2"}, tags={"z": "1", "a": ""})
    assert made.status == PENDING and list(made.params) == list(made.tags) == ["a", "z"]
    assert store.logged_models.get("m-1") == made and store.logged_models.get("m-2") is None


def test_states_parameters_and_tags(store, create):
    create("m-1", params={"lr": "1"}, tags={"a": "1", "b": "2"})
    models = store.logged_models
    assert models.set_status("m-1", READY, 5000).status == READY and models.set_status("m-2", READY, 1) is None
    assert models.add_params("m-1", {"depth": "3", "lr": "1"}) == "lr" and models.add_params("m-2", {}) is False
    assert models.add_params("m-1", {"depth": "3"}) is True
    assert models.set_tags("m-1", {"a": "3", "c": "4"}) and not models.set_tags("m-2", {})
    assert models.delete_tag("m-1", "b") and not models.delete_tag("m-1", "b") and models.delete_tag("m-2", "b") is None
    found = models.get("m-1")
    assert (found.params, found.tags, found.modified_ms) == ({"depth": "3", "lr": "1"}, {"a": "3", "c": "4"}, 5000)


def test_metrics_in_the_order_of_logging(store, create):
    create("m-1")
    assert log(store, "m-1", 0.5, dataset=("d", "x")) is None and log(store, "m-1", math.nan, name="aaa") is None
    assert log(store, "m-1", 0.5, dataset=("d", "x")) is None
    assert "another value" in log(store, "m-1", 0.6, dataset=("d", "x"))
    assert "'m-2' not found" in log(store, "m-2", 0.6)
    first, second = store.logged_models.get("m-1").metrics
    assert first == ModelMetric("acc", 0.5, 1, 0, "run", "d", "x")
    assert second.name == "aaa" and math.isnan(second.value)


def test_a_deleted_model_is_only_read_on_demand(store, create):
    create("m-1")
    assert store.logged_models.delete("m-1", 9.0) and not store.logged_models.delete("m-2", 9.0)
    assert store.logged_models.get("m-1") is None
    assert store.logged_models.get("m-1", even_deleted=True).modified_ms == 9000


@pytest.fixture
def find(store, create, experiment):
    create("m-1", name="alpha", created_ms=1000, type="a", params={"lr": "0.1"}, tags={"stage": "Prod"})
    create("m-2", name="beta", created_ms=2000, type="b", params={"lr": "0.2"}, status=READY)
    create("m-3", name="gamma", created_ms=3000)
    create("m-4", name="deleted", created_ms=4000, deleted_at=1.0)
    log(store, "m-1", 0.5, 100, dataset=("d", "x"))
    log(store, "m-1", 0.9, 200, dataset=("d2", "x2"))
    log(store, "m-2", 0.7, 100, dataset=("d", "x"))
    log(store, "m-2", 0.6, 300)

    def names(*clauses, **fields):
        query = ModelQuery(fields.pop("experiments", [experiment]), clauses, **fields)
        return [model.name for model in store.logged_model_search.find(query)]

    return names


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        (Clause("attribute", "name", "LIKE", "%a"), ["gamma", "beta", "alpha"]),
        (Clause("attribute", "name", "IN", ("alpha", "beta")), ["beta", "alpha"]),
        (Clause("attribute", "status", "=", "READY"), ["beta"]),
        (Clause("attribute", "status", "!=", "PENDING"), ["beta"]),
        (Clause("attribute", "status", "ILIKE", "ready"), ["beta"]),
        (Clause("attribute", "status", "=", "2"), ["beta"]),
        (Clause("attribute", "creation_timestamp", ">=", 2000), ["gamma", "beta"]),
        (Clause("attribute", "model_id", "!=", "m-1"), ["gamma", "beta"]),
        (Clause("parameter", "lr", "!=", "0.1"), ["beta"]),
        (Clause("tag", "stage", "ILIKE", "prod"), ["alpha"]),
        (Clause("metric", "acc", ">", 0.65), ["beta", "alpha"]),
        (Clause("metric", "acc", "=", 0.6), ["beta"]),
    ],
)
def test_filters(find, clause, expected):
    assert find(clause) == expected


def test_metrics_of_datasets(find):
    above = Clause("metric", "acc", ">", 0.65)
    assert find(above, datasets=[DatasetFilter("d", "x")]) == ["beta"]
    assert find(above, datasets=[DatasetFilter("d"), DatasetFilter("d2", "x2")]) == ["beta", "alpha"]
    assert find(datasets=[DatasetFilter("d2")]) == ["alpha"] and find(datasets=[DatasetFilter("d2", "x")]) == []


def test_orders_and_pages(find, experiment):
    assert find() == ["gamma", "beta", "alpha"] and find(experiments=[experiment + 1]) == find(experiments=[]) == []
    assert find(orders=[ModelOrder("name")]) == ["alpha", "beta", "gamma"]
    assert find(orders=[ModelOrder("model_type", ascending=False)]) == ["beta", "alpha", "gamma"]
    assert find(orders=[ModelOrder("acc", True)]) == ["beta", "alpha", "gamma"]
    assert find(orders=[ModelOrder("acc", True, False)]) == ["alpha", "beta", "gamma"]
    assert find(orders=[ModelOrder("acc", True, False, DatasetFilter("d"))]) == ["beta", "alpha", "gamma"]
    both = [ModelOrder("loss", True), ModelOrder("acc", True)]
    assert find(orders=both, offset=1, limit=1) == ["alpha"]


def test_models_are_removed_with_the_run_that_logged_them(store, create, add):
    create("m-1", source_run_id="run", params={"lr": "1"})
    create("m-2", source_run_id="other")
    add("other")
    log(store, "m-1", 1.0, run_id="other")
    log(store, "m-2", 1.0, run_id="run")
    assert store.removal.find_logged_models(["run", "nope"]) == ["m-1"]
    store.removal.delete_runs(["run"])
    assert store.logged_models.get("m-1", even_deleted=True) is None
    assert store.logged_models.get("m-2").metrics == ()
    assert count(store, "logged_model_labels") == count(store, "logged_model_metrics") == 0


def test_an_experiment_with_models_is_kept(store, create):
    create("m-1")
    store.removal.delete_runs(["run"])
    with pytest.raises(UserErrorException, match="has logged models"):
        store.experiments.delete("exp")
    store.logged_models.delete("m-1", 1.0)
    assert store.experiments.list_logged_models("exp") == ["m-1"]
    store.experiments.delete("exp")
    assert count(store, "logged_models") == count(store, "experiments") == 0
