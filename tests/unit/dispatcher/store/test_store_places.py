from __future__ import annotations

from dataclasses import replace

import pytest

from trainmaster.job.errors import UserErrorException
from trainmaster.shared.records import DatastoreRecord, TargetRecord


def test_targets(store):
    local = TargetRecord("local", "local", 2, 4, 1, {"hosts": ["a", "b"]}, 5.0)
    store.targets.put(local)
    store.targets.put(replace(local, name="big", nodes=9))
    assert store.targets.get("local") == local and store.targets.get("nobody") is None
    store.targets.put(replace(local, nodes=3))
    assert [(target.name, target.nodes) for target in store.targets.list_all()] == [("big", 9), ("local", 3)]
    assert store.targets.delete("local") and not store.targets.delete("local")


def test_datastores(store):
    one = DatastoreRecord("one", "file:///data", {"key": "value"}, True, 5.0)
    store.datastores.put(one)
    store.datastores.put(replace(one, name="two", is_default=False))
    assert store.datastores.get("one") == one and store.datastores.get("nobody") is None
    store.datastores.set_default("two")
    assert [(found.name, found.is_default) for found in store.datastores.list_all()] == [("one", False), ("two", True)]
    store.datastores.put(one)
    assert [found.is_default for found in store.datastores.list_all()] == [True, False]
    with pytest.raises(UserErrorException, match="nobody"):
        store.datastores.set_default("nobody")
    assert [found.is_default for found in store.datastores.list_all()] == [True, False]
    assert store.datastores.delete("one") and not store.datastores.delete("one")


def test_facts(store):
    assert store.facts.get("name") is None
    store.facts.put("name", "ws")
    store.facts.put("name", {"a": [1, None]})
    assert store.facts.get("name") == {"a": [1, None]}


def test_experiments_are_made_once(store):
    made = store.experiments.ensure("exp", 1.0)
    assert store.experiments.ensure("exp", 2.0) == made == store.experiments.get("exp")
    assert made.created_at == 1.0 and made.id and store.experiments.get("nobody") is None


def test_experiments_are_archived_and_tagged(store):
    for name in ("a", "b", "c"):
        store.experiments.ensure(name, 1.0)
    assert store.experiments.update("b", archived_at=9.0).archived_at == 9.0
    assert store.experiments.update("c", tags={"x": "1", "y": None}).tags == {"x": "1", "y": None}

    def names(**query):
        return "".join(found.name for found in store.experiments.find(**query))

    assert (names(), names(view="archived"), names(view="all")) == ("ac", "b", "abc")
    assert (names(tags={"x": "1"}), names(tags={"y": None}), names(tags={"x": "2"})) == ("c", "c", "")
    assert (names(name="a"), names(name="b"), names(name="nobody")) == ("a", "", "")
    store.experiments.update("b", archived_at=None)
    assert names() == "abc"


def test_an_experiment_with_runs_stays(store, add):
    add()
    store.experiments.ensure("empty", 1.0)
    with pytest.raises(UserErrorException, match="'exp'"):
        store.experiments.delete("exp")
    store.experiments.delete("empty")
    assert [found.name for found in store.experiments.find()] == ["exp"]


def test_wrong_changes_to_experiments(store):
    store.experiments.ensure("exp", 1.0)
    for wrong in (
        lambda: store.experiments.update("nobody", archived_at=1.0),
        lambda: store.experiments.update("exp", id="other"),
        lambda: store.experiments.delete("nobody"),
    ):
        with pytest.raises(UserErrorException):
            wrong()
