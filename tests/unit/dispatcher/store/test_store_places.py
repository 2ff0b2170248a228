from __future__ import annotations

from dataclasses import replace

import pytest

from trainmaster.job.errors import UserErrorException
from trainmaster.shared.records import DatastoreRecord, TargetRecord


def test_targets(store):
    local = TargetRecord("local", "local", 2, 4, 1, {"hosts": ["a", "b"]}, 5.0)
    store.put_target(local)
    store.put_target(replace(local, name="big", nodes=9))
    assert store.get_target("local") == local and store.get_target("nobody") is None
    store.put_target(replace(local, nodes=3))
    assert [(target.name, target.nodes) for target in store.list_targets()] == [("big", 9), ("local", 3)]
    assert store.delete_target("local") and not store.delete_target("local")


def test_datastores(store):
    one = DatastoreRecord("one", "file:///data", {"key": "value"}, True, 5.0)
    store.put_datastore(one)
    store.put_datastore(replace(one, name="two", is_default=False))
    assert store.get_datastore("one") == one and store.get_datastore("nobody") is None
    store.set_default_datastore("two")
    assert [(found.name, found.is_default) for found in store.list_datastores()] == [("one", False), ("two", True)]
    store.put_datastore(one)
    assert [found.is_default for found in store.list_datastores()] == [True, False]
    with pytest.raises(UserErrorException, match="nobody"):
        store.set_default_datastore("nobody")
    assert [found.is_default for found in store.list_datastores()] == [True, False]
    assert store.delete_datastore("one") and not store.delete_datastore("one")


def test_facts(store):
    assert store.get_fact("name") is None
    store.put_fact("name", "ws")
    store.put_fact("name", {"a": [1, None]})
    assert store.get_fact("name") == {"a": [1, None]}


def test_experiments_are_made_once(store):
    made = store.ensure_experiment("exp", 1.0)
    assert store.ensure_experiment("exp", 2.0) == made == store.get_experiment("exp")
    assert made.created_at == 1.0 and made.id and store.get_experiment("nobody") is None


def test_experiments_are_archived_and_tagged(store):
    for name in ("a", "b", "c"):
        store.ensure_experiment(name, 1.0)
    assert store.update_experiment("b", archived_at=9.0).archived_at == 9.0
    assert store.update_experiment("c", tags={"x": "1", "y": None}).tags == {"x": "1", "y": None}

    def names(**query):
        return "".join(found.name for found in store.list_experiments(**query))

    assert (names(), names(view="archived"), names(view="all")) == ("ac", "b", "abc")
    assert (names(tags={"x": "1"}), names(tags={"y": None}), names(tags={"x": "2"})) == ("c", "c", "")
    assert (names(name="a"), names(name="b"), names(name="nobody")) == ("a", "", "")
    store.update_experiment("b", archived_at=None)
    assert names() == "abc"


def test_an_experiment_with_runs_stays(store, add):
    add()
    store.ensure_experiment("empty", 1.0)
    with pytest.raises(UserErrorException, match="'exp'"):
        store.delete_experiment("exp")
    store.delete_experiment("empty")
    assert [found.name for found in store.list_experiments()] == ["exp"]


def test_wrong_changes_to_experiments(store):
    store.ensure_experiment("exp", 1.0)
    for wrong in (
        lambda: store.update_experiment("nobody", archived_at=1.0),
        lambda: store.update_experiment("exp", id="other"),
        lambda: store.delete_experiment("nobody"),
    ):
        with pytest.raises(UserErrorException):
            wrong()
