"""Names, versions, labels and resources of models."""

from __future__ import annotations

import doctest

import pytest

from trainmaster.job.errors import ModelNotFoundException, UserErrorException, WebserviceException
from trainmaster.job.script import model_questions, model_rules
from trainmaster.job.script.model_rules import (
    Framework,
    as_filter,
    check_framework,
    check_labels,
    check_name,
    check_version,
    dataset_uses,
    label_names,
    split_id,
)
from trainmaster.job.script.resource_configuration import ResourceConfiguration, from_plain, to_plain
from trainmaster.sdk.services import profiling
from trainmaster.sdk.services.profiling import Measured, summary
from trainmaster.snapshots import model_sources as sources


@pytest.mark.parametrize("module", [model_rules, sources, profiling])
def test_examples(module):
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("name", ["a", "7", "sklearn_mnist", "A.b-c_d", "x" * 255, "1.0.0"])
def test_names(name):
    assert check_name(name) == name


@pytest.mark.parametrize(
    "name", ["", "-a", ".a", "_a", "a b", "a/b", "../a", "a:1", "a\n", "a\0", "é", "x" * 256, None, 7, b"a", "٣"]
)
def test_no_names(name):
    with pytest.raises(WebserviceException, match="cannot be the name of a model"):
        check_name(name)


@pytest.mark.parametrize("given", ["a", "a:", ":1", "a:b", "a:-1", "a:1.5", ""])
def test_no_ids(given):
    with pytest.raises(WebserviceException, match="is not the id of a model"):
        split_id(given)


def test_versions():
    assert [check_version(each) for each in (None, 1, "12")] == [None, 1, 12]
    for wrong in (0, -1, "latest", "1.0", True, 2**31, "9" * 400, ""):
        with pytest.raises(ModelNotFoundException, match="is not a version"):
            check_version(wrong)


def test_frameworks_are_known_by_their_names_in_any_spelling():
    assert check_framework("pytorch", "1.0") == (Framework.PYTORCH, "1.0")
    assert check_framework("JAX", None) == ("JAX", "")
    assert check_framework(None, None) == ("", "")
    with pytest.raises(WebserviceException, match="needs model_framework"):
        check_framework(None, "1.0")
    named = {name for name in vars(Framework) if name.isupper()}
    assert named == {"CUSTOM", "TENSORFLOW", "SCIKITLEARN", "ONNX", "TFKERAS", "PYTORCH", "MULTI"}


def test_labels():
    assert check_labels({1: 2, "a": None}, "tags") == {"1": "2", "a": ""}
    assert check_labels(None, "tags") == {}
    assert label_names("a") == ["a"] and label_names(["a", "b"]) == ["a", "b"] and label_names(None) == []
    with pytest.raises(UserErrorException, match="tags must be a dict"):
        check_labels(["a"], "tags")


def test_filters():
    assert as_filter({"a": 1, "b": None}, "tags") == {"a": "1", "b": None}
    assert as_filter("a", "tags") == {"a": None}
    assert as_filter([("a", 2)], "tags") == {"a": "2"}
    with pytest.raises(UserErrorException, match="is not a filter of tags"):
        as_filter([["a", "b", "c"]], "tags")


@pytest.mark.parametrize("wrong", ["training", {"training": "d"}, ["training"], [("training",)], [("a", "b", "c")]])
def test_datasets_are_pairs(wrong):
    assert dataset_uses(None, str) == []
    with pytest.raises(UserErrorException, match="is not a reference to a dataset"):
        dataset_uses(wrong, str)


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ((None, None, None), "neither was given"),
        ((None, "m:2", 3), "model m:2 is not version 3"),
        ((None, "m:99999999999999999999", None), "is not a version"),
        (("a/b", None, None), "cannot be the name"),
    ],
)
def test_a_question_that_cannot_be_meant_is_never_sent(asked, error):
    def call(*args, **kwargs):
        raise AssertionError("asked")

    with pytest.raises(WebserviceException, match=error):
        model_questions.find(call, *asked, None, None, None, None)


def test_resources():
    given = ResourceConfiguration(cpu=1, memory_in_gb=0.5)
    assert given.serialize() == {"cpu": 1, "memoryInGB": 0.5, "gpu": None}
    assert (
        repr(from_plain(to_plain(given))) == repr(ResourceConfiguration.deserialize(given.serialize())) == repr(given)
    )
    assert to_plain(None) == {} and from_plain({}) is None and ResourceConfiguration.deserialize(None) is None
    for wrong in ({"cpu": 0}, {"cpu": "1"}, {"memory_in_gb": -1}, {"memory_in_gb": float("nan")}, {"gpu": 0.5}):
        with pytest.raises(WebserviceException):
            ResourceConfiguration(**wrong)
    with pytest.raises(WebserviceException, match="has to be a ResourceConfiguration"):
        to_plain({"cpu": 1})


def test_a_profile_tells_how_slow_and_how_many():
    measured = Measured(tuple(n / 1000 for n in range(1, 1001)), 250, 1000.0, 1500.0, 100 * 2**20, "500: no")
    found = summary(measured)
    assert (found["totalQueries"], found["successQueries"], found["successRate"]) == (1250, 1000, 0.8)
    shown = [found[f"latencyPercentile{each}InMs"] for each in ("50", "90", "95", "99", "999")]
    assert shown == [500, 900, 950, 990, 999]
    assert (found["measuredQueriesPerSecond"], found["maxUtilizedCpu"], found["recommendedCpu"]) == (1.2, 1.5, 1.5)
    assert (found["recommendedMemoryInGB"], found["error"]) == (0.2, "500: no")


def test_a_profile_without_an_answer_is_none():
    with pytest.raises(WebserviceException, match="no request of the profile was answered"):
        summary(Measured((), 100, 1.0, 0.0, 0, "500: no"))
