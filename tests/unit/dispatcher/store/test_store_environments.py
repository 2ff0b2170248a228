"""Registered environments: versions and labels."""

from __future__ import annotations

import pytest

from trainmaster.job.errors import UserErrorException


def test_versions_count_up_and_the_same_is_no_new_one(store):
    first = store.environments.register("mine", {"python": {"a": 1, "b": 2}}, at=1.0)
    again = store.environments.register("mine", {"python": {"b": 2, "a": 1}}, at=2.0)
    other = store.environments.register("mine", {"python": {"a": 2}}, at=3.0)
    assert (first.version, again, other.version) == (1, first, 2)
    assert (first.definition, first.created_at) == ({"python": {"a": 1, "b": 2}}, 1.0)
    assert first.digest != other.digest


def test_what_was_before_is_a_new_version_again(store):
    versions = [store.environments.register("mine", {"a": a}, at=1.0).version for a in (1, 2, 1)]
    assert versions == [1, 2, 3]


def test_get(store):
    for number in (1, 2):
        store.environments.register("mine", {"a": number}, at=number)
    assert store.environments.get("mine").version == 2
    assert store.environments.get("mine", version=1).definition == {"a": 1}
    assert store.environments.get("mine", label="Latest").version == 2
    assert store.environments.get("mine", version=3) is None
    assert store.environments.get("mine", label="none") is None
    assert store.environments.get("other") is None


def test_the_list_has_the_newest_of_each(store):
    for name, number in (("b", 1), ("a", 1), ("b", 2)):
        store.environments.register(name, {"a": number}, at=1.0)
    assert [(each.name, each.version) for each in store.environments.list_newest()] == [("a", 1), ("b", 2)]


def test_a_label_is_on_one_version(store):
    for number in (1, 2):
        store.environments.register("mine", {"a": number}, at=1.0)
    store.environments.add_labels("mine", 1, ["good", "old", "good"])
    assert store.environments.get("mine", version=1).labels == ("good", "old")
    store.environments.add_labels("mine", 2, ["good"])
    assert store.environments.get("mine", label="good").version == 2
    assert store.environments.get("mine", version=1).labels == ("old",)
    assert store.environments.add_labels("mine", 2, ["good"]).labels == ("good",)


@pytest.mark.parametrize(("version", "labels"), [(9, ["good"]), (1, ["Latest"])])
def test_labels_that_cannot_be(store, version, labels):
    store.environments.register("mine", {}, at=1.0)
    with pytest.raises(UserErrorException):
        store.environments.add_labels("mine", version, labels)
    assert store.environments.get("mine").labels == ()
