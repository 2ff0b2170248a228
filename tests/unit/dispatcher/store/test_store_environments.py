"""Registered environments: versions and labels."""

from __future__ import annotations

import pytest

from trainmaster.job.errors import UserErrorException


def test_versions_count_up_and_the_same_is_no_new_one(store):
    first = store.put_environment("mine", {"python": {"a": 1, "b": 2}}, at=1.0)
    again = store.put_environment("mine", {"python": {"b": 2, "a": 1}}, at=2.0)
    other = store.put_environment("mine", {"python": {"a": 2}}, at=3.0)
    assert (first.version, again, other.version) == (1, first, 2)
    assert (first.definition, first.created_at) == ({"python": {"a": 1, "b": 2}}, 1.0)
    assert first.digest != other.digest


def test_what_was_before_is_a_new_version_again(store):
    versions = [store.put_environment("mine", {"a": a}, at=1.0).version for a in (1, 2, 1)]
    assert versions == [1, 2, 3]


def test_get(store):
    for number in (1, 2):
        store.put_environment("mine", {"a": number}, at=number)
    assert store.get_environment("mine").version == 2
    assert store.get_environment("mine", version=1).definition == {"a": 1}
    assert store.get_environment("mine", label="Latest").version == 2
    assert store.get_environment("mine", version=3) is None
    assert store.get_environment("mine", label="none") is None
    assert store.get_environment("other") is None


def test_the_list_has_the_newest_of_each(store):
    for name, number in (("b", 1), ("a", 1), ("b", 2)):
        store.put_environment(name, {"a": number}, at=1.0)
    assert [(each.name, each.version) for each in store.list_environments()] == [("a", 1), ("b", 2)]


def test_a_label_is_on_one_version(store):
    for number in (1, 2):
        store.put_environment("mine", {"a": number}, at=1.0)
    store.label_environment("mine", 1, ["good", "old", "good"])
    assert store.get_environment("mine", version=1).labels == ("good", "old")
    store.label_environment("mine", 2, ["good"])
    assert store.get_environment("mine", label="good").version == 2
    assert store.get_environment("mine", version=1).labels == ("old",)
    assert store.label_environment("mine", 2, ["good"]).labels == ("good",)


@pytest.mark.parametrize(("version", "labels"), [(9, ["good"]), (1, ["Latest"])])
def test_labels_that_cannot_be(store, version, labels):
    store.put_environment("mine", {}, at=1.0)
    with pytest.raises(UserErrorException):
        store.label_environment("mine", version, labels)
    assert store.get_environment("mine").labels == ()
