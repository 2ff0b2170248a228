"""MLflow's registry in the store: names, aliases, stages, and searches."""

from __future__ import annotations

import pytest

from trainmaster.dispatcher.api.models import matching
from trainmaster.shared.filters.clauses import Clause, SortKey
from trainmaster.shared.records import ModelQuery, ModelRecord


def model(key: str, name: str = "net", **more) -> ModelRecord:
    return ModelRecord(name=name, key=key, manifest="0" * 64, entry="m.pkl", **more)


def test_a_name_has_no_versions_at_first_and_is_there_with_the_first_version(store):
    made = store.registered_models.create("empty one", "text", {"a": "1"})
    assert store.registered_models.get("empty one") == made and store.registered_models.list_versions("empty one") == []
    assert store.registered_models.create("empty one", "", {}) is None
    kept = store.models.register(model("1"))
    found = store.registered_models.get("net")
    assert (found.created_at, found.modified_at, found.tags) == (kept.created_at, kept.created_at, {})


def test_a_name_is_renamed_with_its_versions(store):
    for key in ("1", "2"):
        store.models.register(model(key))
    store.models.set_alias("net", "best", 1)
    store.models.delete("net", 2)
    store.models.register(model("x", name="gone"))
    store.registered_models.create("taken", "", {})
    assert not store.registered_models.rename("net", "taken")
    assert store.registered_models.rename("net", "new net")
    assert store.registered_models.get("net") is None and store.models.get("net", 1) is None
    assert store.models.get("new net", 1).aliases == ("best",)
    # The number of the deleted version went with it.
    assert store.models.register(model("3", name="new net")).version == 3


def test_a_deleted_name_begins_again(store):
    for key in ("1", "2"):
        store.models.register(model(key))
    store.registered_models.delete("net")
    assert store.registered_models.get("net") is None and store.models.find(name="net") == []
    assert store.models.register(model("3")).version == 1


def test_an_alias_belongs_to_one_version(store):
    for key in ("1", "2"):
        store.models.register(model(key))
    before = store.models.get("net", 1).modified_at
    store.models.set_alias("net", "best", 1)
    store.models.set_alias("net", "any", 1)
    store.models.set_alias("net", "best", 2)
    assert [store.models.get("net", version).aliases for version in (1, 2)] == [("any",), ("best",)]
    assert store.models.get("net", 1).modified_at == before
    store.models.remove_alias("net", "best")
    assert store.models.get("net", 2).aliases == ()


def test_stages_change_alone_or_archive_the_others(store):
    for key in ("1", "2", "3"):
        store.models.register(model(key))
    for version in (1, 2):
        store.models.set_stage("net", version, "Production")
    store.models.set_stage("net", 3, "Production", "Archived")
    assert [each.stage for each in store.registered_models.list_versions("net")] == [
        "Archived",
        "Archived",
        "Production",
    ]


def test_the_tags_that_jobs_write_become_aliases_and_a_stage(store):
    """A job of an older Trainmaster, and one that asks by files, has no other way."""
    first = store.models.register(model("1", tags={"mlflow.alias.best": "true", "mlflow.stage": "staging", "a": "b"}))
    assert (first.tags, first.aliases, first.stage) == ({"a": "b"}, ("best",), "Staging")
    second = store.models.register(model("2"))
    store.models.relabel(second, {"mlflow.alias.best": "true", "mlflow.stage": "Production"}, [], {}, {})
    assert store.models.get("net", 1).aliases == ()
    found = store.models.get("net", 2)
    assert (found.tags, found.aliases, found.stage) == ({}, ("best",), "Production")
    store.models.relabel(found, {"c": "d"}, ["mlflow.alias.best", "mlflow.stage"], {}, {})
    found = store.models.get("net", 2)
    assert (found.tags, found.aliases, found.stage) == ({"c": "d"}, (), "None")


@pytest.fixture
def names(store):
    for number in range(4):
        store.registered_models.create(f"Net{number}", "", {"kind": "odd" if number % 2 else "Even", "n": str(number)})
    store.registered_models.create("greeting", "", {"mlflow.prompt.is_prompt": "true"})
    return lambda *clauses, order=(), most=10, offset=0: [
        each.name for each in store.registry_search.find_names(clauses, order, most, offset)
    ]


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ([], "0123"),
        ([Clause("attribute", "name", "=", "Net2")], "2"),
        ([Clause("attribute", "name", "!=", "Net2")], "013"),
        ([Clause("attribute", "name", "LIKE", "net%")], ""),
        ([Clause("attribute", "name", "ILIKE", "net_")], "0123"),
        ([Clause("attribute", "name", "NOT IN", ("Net1", "Net2"))], "03"),
        ([Clause("tag", "kind", "=", "odd")], "13"),
        ([Clause("tag", "kind", "!=", "odd")], "02"),
        ([Clause("tag", "kind", "ILIKE", "EV%"), Clause("tag", "n", "LIKE", "2")], "2"),
        ([Clause("tag", "absent", "!=", "x")], ""),
        ([Clause("tag", "mlflow.prompt.is_prompt", "=", "false")], "0123"),
        ([Clause("tag", "kind' OR 1=1 --", "!=", "x")], ""),
    ],
)
def test_names_are_searched(names, clauses, expected):
    assert names(*clauses) == [f"Net{number}" for number in expected]


def test_names_are_sorted_and_come_in_pages(names):
    assert names(order=[SortKey("attribute", "name", True)], most=2, offset=1) == ["Net2", "Net1"]
    assert names(Clause("tag", "mlflow.prompt.is_prompt", "=", "true")) == ["greeting"]


def test_versions_are_searched(store):
    for number, name in enumerate(("a", "b", "a", "a", "b")):
        source = f"runs:/r{number}/model" if number else ""
        store.models.register(
            model(str(number), name, run_id=f"r{number}", source=source, tags={"n": str(number)} if number else {})
        )
    store.models.delete("a", 3)

    def find(*clauses, order=(), most=10, offset=0):
        found = store.registry_search.find_versions(clauses, order, most, offset)
        return [f"{each.name}{each.version}" for each in found]

    assert find() == ["a2", "a1", "b2", "b1"]
    assert find(Clause("attribute", "version_number", ">=", 2)) == ["a2", "b2"]
    assert find(Clause("attribute", "run_id", "IN", ("r0", "r1"))) == ["a1", "b1"]
    assert find(Clause("attribute", "source_path", "=", "runs:/r2/model")) == ["a2"]
    # One of ours has an address of its own.
    assert find(Clause("attribute", "source_path", "LIKE", "mlflow-artifacts:/models/a/1")) == ["a1"]
    assert find(Clause("tag", "n", "!=", "4")) == ["a2", "b1"]
    newest = [SortKey("attribute", "version_number", True), SortKey("attribute", "name", True)]
    assert find(order=newest) == ["b2", "a2", "b1", "a1"] and find(order=newest, most=2, offset=1) == ["a2", "b1"]


def test_prompts_are_not_listed_as_models(store):
    store.models.register(model("1"))
    store.models.register(model("2", "greeting", tags={"mlflow.prompt.is_prompt": "true"}))
    assert [each.name for each in matching(store, ModelQuery())] == ["net"]
