"""Datasets: by id, by name and version."""

from __future__ import annotations

from dataclasses import replace

from trainmaster.shared.job_spec import DatasetDefinition, DataSource
from trainmaster.shared.records import DatasetRecord

FILES = DatasetDefinition("file", (DataSource("a/*.csv", "blobs"),), steps=({"do": "take", "count": 2},))
TABLE = DatasetDefinition("tabular", (DataSource("https://example.com/x.csv"),), {"format": "delimited"})


def named(dataset_id, name="set", definition=FILES, **more):
    return DatasetRecord(dataset_id, definition, name, created_at=1.0, **more)


def test_what_is_kept_comes_back(store):
    given = named("1", definition=TABLE, description="a \0 text", tags={"k": "v"})
    kept = store.datasets.register(given)
    assert kept == replace(given, version=1)
    assert store.datasets.get("1").definition == TABLE
    assert store.datasets.get_by_name("set").tags == {"k": "v"}


def test_versions_count_up_and_the_same_id_is_the_same(store):
    assert [store.datasets.register(named(key)).version for key in ("1", "2", "1", "3")] == [1, 2, 1, 3]
    assert store.datasets.get_by_name("set").id == "3"
    assert store.datasets.get_by_name("set", 2).id == "2"
    assert store.datasets.get_by_name("set", 9) is None


def test_those_without_a_name_are_found_by_id_only(store):
    for key in ("x", "y"):
        store.datasets.save(DatasetRecord(key, FILES, created_at=1.0))
    store.datasets.save(DatasetRecord("x", TABLE, created_at=2.0))
    assert store.datasets.get("x").definition == FILES
    assert store.datasets.get("x").name == ""
    assert store.datasets.list_newest() == []


def test_the_list_has_the_newest_of_each(store):
    for key, name in (("1", "b"), ("2", "a"), ("3", "b")):
        store.datasets.register(named(key, name))
    assert [(each.name, each.version) for each in store.datasets.list_newest()] == [("a", 1), ("b", 2)]


def test_changes_and_the_end(store):
    for key in ("1", "2"):
        store.datasets.register(named(key))
    store.datasets.update("1", tags={"a": "b"})
    store.datasets.update("1", description="new")
    assert (store.datasets.get("1").description, store.datasets.get("1").tags) == ("new", {"a": "b"})
    assert store.datasets.delete("set") == 2
    assert store.datasets.delete("set") == 0
    assert store.datasets.get("1") is None
