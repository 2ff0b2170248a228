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
    kept = store.register_dataset(given)
    assert kept == replace(given, version=1)
    assert store.get_dataset("1").definition == TABLE
    assert store.find_dataset("set").tags == {"k": "v"}


def test_versions_count_up_and_the_same_id_is_the_same(store):
    assert [store.register_dataset(named(key)).version for key in ("1", "2", "1", "3")] == [1, 2, 1, 3]
    assert store.find_dataset("set").id == "3"
    assert store.find_dataset("set", 2).id == "2"
    assert store.find_dataset("set", 9) is None


def test_those_without_a_name_are_found_by_id_only(store):
    for key in ("x", "y"):
        store.save_dataset(DatasetRecord(key, FILES, created_at=1.0))
    store.save_dataset(DatasetRecord("x", TABLE, created_at=2.0))
    assert store.get_dataset("x").definition == FILES
    assert store.get_dataset("x").name == ""
    assert store.list_datasets() == []


def test_the_list_has_the_newest_of_each(store):
    for key, name in (("1", "b"), ("2", "a"), ("3", "b")):
        store.register_dataset(named(key, name))
    assert [(each.name, each.version) for each in store.list_datasets()] == [("a", 1), ("b", 2)]


def test_changes_and_the_end(store):
    for key in ("1", "2"):
        store.register_dataset(named(key))
    store.update_dataset("1", tags={"a": "b"})
    store.update_dataset("1", description="new")
    assert (store.get_dataset("1").description, store.get_dataset("1").tags) == ("new", {"a": "b"})
    assert store.forget_dataset("set") == 2
    assert store.forget_dataset("set") == 0
    assert store.get_dataset("1") is None
