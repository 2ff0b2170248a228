"""Parameter expressions: v1's form, v1's checks."""

import json

import numpy
import pytest

from trainmaster.job.errors import HyperDriveConfigException
from trainmaster.tuning import parameter_expressions as pe


@pytest.mark.parametrize(
    ("made", "form"),
    [
        (pe.choice(1, 2, 3), ["choice", [[1, 2, 3]]]),
        (pe.choice([1, 2, 3]), ["choice", [[1, 2, 3]]]),
        (pe.choice((1, 2)), ["choice", [[1, 2]]]),
        (pe.choice(range(1, 4)), ["choice", [[1, 2, 3]]]),
        (pe.choice("sgd"), ["choice", [["sgd"]]]),
        (pe.choice([[64, 32], [128]]), ["choice", [[[64, 32], [128]]]]),
        (pe.choice(True, None, ""), ["choice", [[True, None, ""]]]),
        (pe.choice(numpy.float64(0.5), numpy.int64(2)), ["choice", [[0.5, 2]]]),
        (pe.choice(numpy.str_("a")), ["choice", [["a"]]]),
        (
            pe.choice({"--o": "sgd", "--m": pe.uniform(0, 1)}, {"--o": "adam"}),
            ["choice", [[{"--o": "sgd", "--m": ["uniform", [0, 1]]}, {"--o": "adam"}]]],
        ),
        (pe.randint(5), ["randint", [5]]),
        (pe.uniform(0.1, 0.9), ["uniform", [0.1, 0.9]]),
        (pe.uniform(numpy.float32(0.5), numpy.int64(2)), ["uniform", [0.5, 2.0]]),
        (pe.quniform(1, 10, 2), ["quniform", [1, 10, 2]]),
        (pe.loguniform(-6, -1), ["loguniform", [-6, -1]]),
        (pe.loguniform(-1, -1), ["loguniform", [-1, -1]]),
        (pe.qloguniform(0, 5, 3), ["qloguniform", [0, 5, 3]]),
        (pe.normal(10, 3), ["normal", [10, 3]]),
        (pe.normal(10, 0), ["normal", [10, 0]]),
        (pe.qnormal(10, 3, 2), ["qnormal", [10, 3, 2]]),
        (pe.lognormal(0, 1), ["lognormal", [0, 1]]),
        (pe.qlognormal(0, 1, 5), ["qlognormal", [0, 1, 5]]),
    ],
)
def test_form(made, form):
    assert made == form
    assert json.loads(json.dumps(made)) == form
    assert pe.check_expression("p", json.loads(json.dumps(made))) == form


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pe.choice(), "has no values"),
        (lambda: pe.choice([]), "has no values"),
        (lambda: pe.choice(range(0)), "has no values"),
        (lambda: pe.choice([1], [2]), "one list or range"),
        (lambda: pe.choice(1, [2]), "one list or range"),
        (lambda: pe.choice(range(3), 4), "one list or range"),
        (lambda: pe.choice(float("nan")), "cannot have the value nan"),
        (lambda: pe.choice(object), "of type type"),
        (lambda: pe.choice("a\0b"), "NUL"),
        (lambda: pe.choice(1, {"a": 2}), "both values and dicts"),
        (lambda: pe.choice({"a": {"b": 1}}), "is a dict"),
        (lambda: pe.choice({"": 1}), "name of a parameter"),
        (lambda: pe.randint(0), "upper of randint must be at least 1, not 0"),
        (lambda: pe.randint(2.0), "whole number, not 2.0"),
        (lambda: pe.randint(True), "whole number, not True"),
        (lambda: pe.uniform(1, 1), "less than max_value"),
        (lambda: pe.uniform(2, 1), "less than max_value"),
        (lambda: pe.uniform("0", 1), "min_value of uniform must be a number, not '0'"),
        (lambda: pe.uniform(0, float("inf")), "max_value of uniform must be a number"),
        (lambda: pe.uniform(0, None), "max_value of uniform must be a number"),
        (lambda: pe.uniform(-1e308, 1e308), "numbers that are too large"),
        (lambda: pe.uniform(0, 10**400), "max_value of uniform must be a number"),
        (lambda: pe.normal(1e308, 1e308), "numbers that are too large"),
        (lambda: pe.quniform(0, 1, 0.5), "q of quniform must be a whole number"),
        (lambda: pe.quniform(0, 1, 0), "q of quniform must be at least 1"),
        (lambda: pe.quniform(1, 1, 1), "less than max_value"),
        (lambda: pe.loguniform(0, -1), "must not be greater than max_value"),
        (lambda: pe.loguniform(1, 1000), "too large or too small for a number"),
        (lambda: pe.qloguniform(0, 1, "1"), "q of qloguniform"),
        (lambda: pe.normal(0, -1), "sigma of normal must not be negative"),
        (lambda: pe.qnormal(0, 1, 1.5), "q of qnormal"),
        (lambda: pe.lognormal(800, 1), "too large or too small for a number"),
        (lambda: pe.qlognormal(0, -1, 1), "sigma of qlognormal"),
    ],
)
def test_refused(make, message):
    with pytest.raises(HyperDriveConfigException, match=message):
        make()


@pytest.mark.parametrize(
    "value",
    [0.1, "uniform", ["uniform"], ["uniform", 1], ["unknown", [1]], ["uniform", [1]], ["uniform", [2, 1]], None],
)
def test_what_is_no_expression_is_named(value):
    with pytest.raises(HyperDriveConfigException, match="parameter '--lr'"):
        pe.check_expression("--lr", value)


def test_limits_that_look_like_values_are_warned_about_once():
    with pytest.warns(UserWarning, match=r"exponents.*write loguniform\(-9.21, -2.303\)"):
        made = pe.loguniform(0.0001, 0.1)
    assert pe.check_expression("lr", made) == made
