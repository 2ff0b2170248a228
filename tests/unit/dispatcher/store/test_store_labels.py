from __future__ import annotations

import pytest

from trainmaster.job.errors import RunNotFoundException, UserErrorException
from trainmaster.shared.records import RunQuery


def found(store, **query):
    return [run.id for run in store.runs.find(RunQuery(**query))]


def test_tags_merge_change_and_go(store, add):
    add(tags={"a": "1", "b": "2"})
    store.runs.set_tags("run", {"b": "3", "c": None})
    assert store.runs.get("run").tags == {"a": "1", "b": "3", "c": None}
    assert found(store, tags={"b": "3"}) == ["run"] and found(store, tags={"b": "2"}) == []
    store.runs.remove_tags("run", ["b", "nothing"])
    assert store.runs.get("run").tags == {"a": "1", "c": None}
    assert found(store, tags={"b": None}) == [] and found(store, tags={"c": None}) == ["run"]


def test_a_tag_may_be_long_and_is_still_found(store, add):
    long, other = "x" * 100_000, "x" * 99_999 + "y"
    add(tags={"config": long})
    assert store.runs.get("run").tags["config"] == long
    assert found(store, tags={"config": long}) == ["run"] and found(store, tags={"config": other}) == []


def test_tags_may_be_any_json(store, add):
    add()
    store.runs.set_tags("run", {"list": [1, {"a": None}], "flag": True, 7: "seven"})
    assert store.runs.get("run").tags == {"list": [1, {"a": None}], "flag": True, "7": "seven"}
    assert found(store, tags={"list": [1, {"a": None}]}) == ["run"]


def test_a_broken_character_is_kept_readable(store, add):
    add(tags={"a\ud800": "b\udfff\0"})
    assert store.runs.get("run").tags == {"a\\ud800": "b\udfff\0"}


def test_properties_are_written_once(store, add):
    add(properties={"a": "1"})
    store.runs.add_properties("run", {"a": "1", "b": 2})
    assert store.runs.get("run").properties == {"a": "1", "b": "2"}
    assert found(store, properties={"b": "2"}) == ["run"]
    with pytest.raises(UserErrorException, match="'a'"):
        store.runs.add_properties("run", {"c": "3", "a": "other"})
    assert store.runs.get("run").properties == {"a": "1", "b": "2"}


def test_labels_of_nobody(store):
    for change in (store.runs.set_tags, store.runs.remove_tags, store.runs.add_properties):
        with pytest.raises(RunNotFoundException, match="nobody"):
            change("nobody", {"a": "b"})
