"""Models in the store: versions, labels, and what a deleted one leaves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trainmaster.dispatcher.api.models import matching
from trainmaster.job.errors import UserErrorException
from trainmaster.shared.records import DatasetUse, ModelQuery, ModelRecord


def model(key: str, name: str = "net", **more) -> ModelRecord:
    return ModelRecord(name=name, key=key, manifest="0" * 64, entry="m.pkl", **more)


def test_what_is_kept_comes_back(store):
    given = model(
        "1",
        description="a \0 text",
        tags={"a": "1"},
        properties={"p": "q"},
        framework="Onnx",
        framework_version="1.2",
        run_id="r",
        experiment="e",
        lineage={"data": ["x"]},
        datasets=(DatasetUse("training", "d"),),
        resources={"cpu": 0.5, "memory_in_gb": None, "gpu": None},
        facts={"inputs": [{"name": "x", "shape": [None, 3]}]},
        byte_count=2**40,
    )
    kept = store.models.register(given)
    assert kept.version == 1 and kept.created_at == kept.modified_at > 0
    found = store.models.get("net", 1)
    assert found == replace(kept, description="a \\x00 text")


def test_versions_count_up_and_the_same_key_is_the_same(store):
    assert [store.models.register(model(key)).version for key in ("1", "2", "1", "3")] == [1, 2, 1, 3]
    assert store.models.register(model("4", name="other")).version == 1
    assert [record.version for record in store.models.find(name="net")] == [3, 2, 1]


def test_the_number_of_a_deleted_version_is_never_given_again(store):
    for key in ("1", "2"):
        store.models.register(model(key))
    store.models.delete("net", 2)
    assert store.models.get("net", 2) is None and len(store.models.find()) == 1
    assert store.models.register(model("3")).version == 3
    # The one that was asked for twice and deleted in between is not made again.
    assert store.models.register(model("2")).version == 2
    assert len(store.models.find()) == 2
    assert store.models.find_manifests() == {"0" * 64}


def test_labels_change_together_or_not_at_all(store):
    kept = store.models.register(model("1", tags={"a": "1", "b": "2"}, properties={"p": "q"}))
    store.models.relabel(kept, {"c": "3"}, ["a", "nothing"], {"r": "s", "p": "q"}, {"fact": [1]})
    found = store.models.get("net", 1)
    assert (found.tags, found.properties) == ({"b": "2", "c": "3"}, {"p": "q", "r": "s"})
    assert found.facts == {"fact": [1]} and found.modified_at >= kept.modified_at
    with pytest.raises(UserErrorException, match="property 'p' of model net:1 is 'q' already"):
        store.models.relabel(kept, {"d": "4"}, [], {"p": "other", "t": "u"}, {"fact": 2})
    assert store.models.get("net", 1) == found


def test_finding(store):
    store.models.register(model("1", tags={"stage": "old"}, run_id="r", datasets=(DatasetUse("training", "d"),)))
    store.models.register(model("2", tags={"stage": "new", "by": "me"}, framework="Onnx", properties={"p": "1"}))
    store.models.register(model("3", name="other", tags={"stage": "new"}))
    store.models.register(model("4"))

    def ids(**wanted):
        return [f"{found.name}:{found.version}" for found in matching(store, ModelQuery(**wanted))]

    assert ids() == ["net:3", "other:1", "net:2", "net:1"]
    assert ids(latest=True) == ["net:3", "other:1"]
    assert ids(tags={"stage": None}) == ["other:1", "net:2", "net:1"]
    assert ids(tags={"stage": "new"}, latest=True) == ["other:1", "net:2"]
    assert ids(tags={"stage": "new", "by": "me"}) == ["net:2"]
    assert ids(name="net", version=2) == ["net:2"]
    assert ids(run_id="r") == ids(dataset_id="d") == ["net:1"]
    assert ids(framework="Onnx") == ids(properties={"p": "1"}) == ["net:2"]
    assert ids(properties={"p": "2"}) == ids(name="nothing") == ids(dataset_id="other") == []
