"""Spaces: reading, names, and the values of expressions."""

import json
import math
from statistics import mean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.job.errors import HyperDriveConfigException
from trainmaster.tuning.parameter_expressions import (
    choice,
    lognormal,
    loguniform,
    normal,
    qlognormal,
    qloguniform,
    qnormal,
    quniform,
    randint,
    uniform,
)
from trainmaster.tuning.samplers import draw
from trainmaster.tuning.space import branch_of, flat, is_conditional, leaves, read_space, value_at

SGD = {"--name": "sgd", "--momentum": uniform(0.5, 0.9)}
ADAM = {"--name": "adam", "--beta": choice(0.9, 0.99)}
CONDITIONAL = {"optimizer": choice(SGD, ADAM), "--lr": loguniform(-6, -1)}


def leaf(expression):
    return read_space({"p": expression})["p"]


@pytest.mark.parametrize(
    ("expression", "u", "value"),
    [
        (choice("a", "b", "c", "d"), 0.0, "a"),
        (choice("a", "b", "c", "d"), 0.26, "b"),
        (choice("a", "b", "c", "d"), 1.0, "d"),
        (randint(10), 0.55, 5),
        (randint(10), 1.0, 9),
        (uniform(2, 4), 0.25, 2.5),
        (quniform(1, 10, 4), 0.0, 0),
        (quniform(1, 10, 4), 0.5, 4),
        (quniform(1, 10, 4), 1.0, 8),
        (loguniform(0, math.log(100)), 0.5, pytest.approx(10)),
        (loguniform(-2, -2), 0.3, pytest.approx(math.exp(-2))),
        (qloguniform(0, math.log(64), 5), 0.5, 10),
        (normal(5, 2), 0.5, 5),
        (normal(5, 2), 0.8413447460685429, pytest.approx(7)),
        (normal(5, 0), 0.9, 5),
        (qnormal(5, 2, 3), 0.8413447460685429, 6),
        (lognormal(0, 1), 0.8413447460685429, pytest.approx(math.e)),
        (qlognormal(0, 1, 2), 0.8413447460685429, 2),
    ],
)
def test_value_at(expression, u, value):
    found = value_at(leaf(expression), u)
    assert found == value
    if expression[0].startswith("q"):
        assert isinstance(found, int)


def test_normal_has_its_mean_and_width():
    values = [value_at(leaf(normal(10, 3)), (n + 0.5) / 2000) for n in range(2000)]
    assert mean(values) == pytest.approx(10, abs=0.01)
    assert stdev(values) == pytest.approx(3, abs=0.02)


NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers()
TWO = ["uniform", "loguniform", "normal", "lognormal"]


@given(st.sampled_from(TWO), NUMBERS, NUMBERS, st.none() | st.integers(1, 1000), st.integers(0, 2**32))
def test_what_is_accepted_has_values(kind, one, two, q, seed):
    """Every expression that passes its checks gives numbers that JSON and command lines can hold."""
    expression = [kind, [one, two]] if q is None else [f"q{kind}", [one, two, q]]
    try:
        node = leaf(expression)
    except HyperDriveConfigException:
        return
    value = value_at(node, draw.unit(seed))
    assert json.loads(json.dumps(value)) == value
    assert math.isfinite(value)


@given(
    st.sampled_from(["uniform", "loguniform"]),
    st.floats(-300, 300),
    st.floats(0.001, 300),
    st.integers(0, 2**32),
)
def test_values_lie_between_their_limits(kind, low, width, seed):
    value = value_at(leaf([kind, [low, low + width]]), draw.unit(seed))
    limits = (low, low + width) if kind == "uniform" else (math.exp(low), math.exp(low + width))
    assert limits[0] <= value <= limits[1]


def test_branches():
    space = read_space(CONDITIONAL)
    assert is_conditional(space)
    assert [name for name, _ in leaves(space)] == ["--momentum", "--beta", "--lr"]
    assert branch_of(space["optimizer"], {"--name": "adam", "--beta": 0.9}) == 1
    assert branch_of(space["optimizer"], {"--name": "adam", "--beta": 0.5}) is None
    assert branch_of(space["optimizer"], "adam") is None
    parameters = {"optimizer": {"--name": "sgd", "--momentum": 0.7}, "--lr": 0.1}
    assert flat(parameters) == {"--name": "sgd", "--momentum": 0.7, "--lr": 0.1}


@pytest.mark.parametrize("data", [{}, None, [], "lr", {1: choice(1)}, {"": choice(1)}, {"--": choice(1)}, {"lr": 0.1}])
def test_what_is_no_space(data):
    with pytest.raises(HyperDriveConfigException):
        read_space(data)


@pytest.mark.parametrize(
    "data",
    [
        {"lr": choice(1), "--lr": choice(2)},
        {"lr": choice(1), "group": choice({"--lr": 1}, {"other": 2})},
        {"one": choice({"--lr": 1}), "two": choice({"-lr": 1})},
        {"one": choice({"--lr": 1, "lr": 2})},
    ],
)
def test_one_argument_twice(data):
    with pytest.raises(HyperDriveConfigException, match="occurs twice"):
        read_space(data)


def test_branches_may_share_names():
    read_space({"one": choice({"--lr": 1, "--name": "a"}, {"--lr": uniform(0, 1)})})
