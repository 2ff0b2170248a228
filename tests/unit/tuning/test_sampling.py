"""The sampling classes: what each allows, and how it compiles."""

import pytest

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
from trainmaster.tuning.sampling import BayesianParameterSampling, GridParameterSampling, RandomParameterSampling
from trainmaster.tuning.spec import SamplingSpec

ALL = {
    "a": choice(1, 2),
    "b": randint(3),
    "c": uniform(0, 1),
    "d": quniform(1, 9, 2),
    "e": loguniform(-3, 0),
    "f": qloguniform(0, 3, 1),
    "g": normal(0, 1),
    "h": qnormal(0, 1, 1),
    "i": lognormal(0, 1),
    "j": qlognormal(0, 1, 1),
}


@pytest.mark.parametrize("kind", [RandomParameterSampling, BayesianParameterSampling])
def test_every_expression(kind):
    sampling = kind(ALL)
    assert sampling.parameter_space == ALL
    assert sampling.parameter_count == 10


def test_compiled():
    assert GridParameterSampling({"a": choice(1)}, {"seed": 5}).compile() == SamplingSpec("grid", 5)
    made = BayesianParameterSampling({"a": choice(1)}, properties={"seed": 5, "algorithm": "gp"}).compile()
    assert made == SamplingSpec("bayesian", 5, "gp")


def test_every_sweep_has_a_seed_of_its_own():
    sampling = RandomParameterSampling(ALL)
    assert len({sampling.compile().seed for _ in range(5)}) > 1


@pytest.mark.parametrize("name", sorted(set(ALL) - {"a"}))
def test_a_grid_allows_only_choice(name):
    with pytest.raises(HyperDriveConfigException, match=f"only choice.*{name!r} is {ALL[name][0]}"):
        GridParameterSampling({"x": choice(1), name: ALL[name]})
    with pytest.raises(HyperDriveConfigException, match="only choice"):
        GridParameterSampling({"x": choice({"y": ALL[name]}, {"z": 1})})


@pytest.mark.parametrize(
    ("space", "properties", "message"),
    [
        ({"p": choice(1, "a")}, None, "mixes numbers and text"),
        ({"p": choice([[1, 2], [3]])}, None, "neither a number nor text"),
        ({"p": choice(None, 1)}, None, "neither a number nor text"),
        ({"p": quniform(0.5, 3, 1)}, None, "must be integers"),
        ({"p": quniform(0, 100_000, 1)}, None, "may have 100000 values, but 'p' has 100001"),
        ({"p": uniform(0, 1)}, {"algorithm": "grid"}, "'tpe' or 'gp'"),
        ({"p": choice({"a": uniform(0, 1)})}, {"algorithm": "gp"}, "depend on others"),
        ({"p": uniform(0, 1)}, {"seed": -1}, "seed must be at least 0"),
        ({"p": uniform(0, 1)}, {"seed": "x"}, "seed must be a whole number"),
        ({"p": uniform(0, 1)}, [1], "properties must be a dict"),
    ],
)
def test_bayesian_refuses(space, properties, message):
    with pytest.raises(HyperDriveConfigException, match=message):
        BayesianParameterSampling(space, properties)


def test_bayesian_allows_what_v1_did():
    BayesianParameterSampling({"a": choice(1, 2.5), "b": choice("x", "y"), "c": quniform(0, 99_999, 1)})


def test_unknown_properties_are_said():
    with pytest.warns(UserWarning, match="algorithm is unknown and ignored"):
        RandomParameterSampling(ALL, {"algorithm": "gp"})
