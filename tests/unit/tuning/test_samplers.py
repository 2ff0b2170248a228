"""The samplers: the same question always gets the same answer, and the answer is good."""

import importlib.util
import json
import math
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sweeps import MAXIMIZE, MINIMIZE, sweep

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
from trainmaster.tuning.samplers import Observation, bayesian, draw, grid, next_parameters, random
from trainmaster.tuning.space import branch_of, read_space
from trainmaster.tuning.spec import SamplingSpec

EVERYTHING = {
    "choice": choice("a", "b", "c"),
    "randint": randint(7),
    "uniform": uniform(-1, 1),
    "quniform": quniform(1, 20, 3),
    "loguniform": loguniform(-5, 0),
    "qloguniform": qloguniform(0, 4, 2),
    "normal": normal(3, 2),
    "constant": normal(3, 0),
    "qnormal": qnormal(30, 9, 5),
    "lognormal": lognormal(0, 1),
    "qlognormal": qlognormal(1, 1, 2),
}
CONDITIONAL = {
    "--lr": uniform(0, 1),
    "optimizer": choice(
        {"--name": "sgd", "--momentum": uniform(0.5, 0.9)},
        {"--name": "adam", "schedule": choice({"--gamma": choice(0.1, 0.5)}, {"--cosine": ""})},
    ),
}


def bayes(space, told, index=None, seed=1, goal=MINIMIZE, algorithm="tpe"):
    number = len(told) if index is None else index
    return bayesian.propose(read_space(space), SamplingSpec("bayesian", seed, algorithm), goal, number, told)


# ---- random


def test_random_is_a_function_of_seed_and_number():
    space = read_space(EVERYTHING)
    twenty = [random.parameters_at(space, 3, n) for n in range(20)]
    assert [random.parameters_at(space, 3, n) for n in reversed(range(20))] == twenty[::-1]
    assert len({json.dumps(each) for each in twenty}) == 20
    assert random.parameters_at(space, 4, 0) != twenty[0]


def test_random_stays_the_same_from_release_to_release():
    """A sweep may continue under a newer Trainmaster."""
    space = read_space({"lr": uniform(0, 1), "n": randint(1000), "c": choice("a", "b", "c")})
    assert random.parameters_at(space, 7, 0) == {"lr": 0.670272687078978, "n": 568, "c": "a"}


def test_a_parameter_does_not_change_when_another_one_comes():
    one = random.parameters_at(read_space({"lr": uniform(0, 1)}), 3, 5)
    two = random.parameters_at(read_space({"n": randint(9), "lr": uniform(0, 1)}), 3, 5)
    assert one["lr"] == two["lr"]


def test_random_is_even():
    space = read_space({"c": choice("a", "b", "c", "d"), "u": uniform(0, 1)})
    drawn = [random.parameters_at(space, 0, n) for n in range(4000)]
    assert all(900 < count < 1100 for count in Counter(each["c"] for each in drawn).values())
    assert all(320 < count < 480 for count in Counter(int(each["u"] * 10) for each in drawn).values())


@given(st.integers(0, 2**32), st.text(max_size=5))
def test_drawn_numbers_lie_strictly_between_0_and_1(seed, name):
    assert 0 < draw.unit(seed, name) < 1


def test_random_takes_one_branch():
    space = read_space(CONDITIONAL)
    chosen = [random.parameters_at(space, 0, n)["optimizer"] for n in range(100)]
    assert {branch_of(space["optimizer"], value) for value in chosen} == {0, 1}


# ---- grid


def test_a_grid_in_its_order():
    space = read_space({"a": choice(1, 2), "b": choice("x", "y", "z")})
    all_of_it = [grid.parameters_at(space, n) for n in range(6)]
    assert [(each["a"], each["b"]) for each in all_of_it] == [(a, b) for a in (1, 2) for b in "xyz"]
    assert [list(each) for each in all_of_it] == [["a", "b"]] * 6
    assert grid.parameters_at(space, 6) is None


def test_a_grid_never_repeats_even_with_equal_values():
    space = read_space({"a": choice(1, 1, 2, 1.0), "b": choice([[1], [1], [2]])})
    assert grid.size(space) == 6
    assert len({json.dumps(grid.parameters_at(space, n)) for n in range(6)}) == 6


def test_a_grid_of_branches():
    space = read_space({"a": choice(1, 2), "o": choice({"x": choice(1, 2, 3)}, {"y": choice({"z": 1}, {"w": 2})})})
    assert grid.size(space) == 10
    found = [grid.parameters_at(space, n) for n in range(10)]
    assert len({json.dumps(each) for each in found}) == 10
    assert found[4] == {"a": 1, "o": {"y": {"w": 2}}}


def test_a_huge_grid_is_not_made():
    space = read_space({f"p{n}": choice(range(1000)) for n in range(20)})
    assert grid.size(space) == 10**60
    assert set(grid.parameters_at(space, 10**60 - 1).values()) == {999}


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_every_combination_once(sizes):
    space = read_space({f"p{n}": choice(range(size)) for n, size in enumerate(sizes)})
    total = math.prod(sizes)
    assert len({tuple(grid.parameters_at(space, n).values()) for n in range(total)}) == total


# ---- Bayesian


def history(space, count, value):
    nodes = read_space(space)
    drawn = [random.parameters_at(nodes, 11, n) for n in range(count)]
    return [Observation(parameters, "ended", value(parameters)) for parameters in drawn]


@pytest.mark.parametrize("space", [EVERYTHING, CONDITIONAL])
@pytest.mark.parametrize("count", [0, 3, 25])
def test_the_same_records_give_the_same_proposal(space, count):
    going = [Observation(each.parameters) for each in history(space, 2, len)]
    told = [*history(space, count, lambda p: float(len(json.dumps(p)))), *going]
    first = bayes(space, told)
    assert bayes(space, told) == first
    assert json.loads(json.dumps(first)) == first
    assert bayes(space, told, index=len(told) + 1) != first
    assert bayes(space, told, seed=2) != first


def test_another_process_proposes_the_same():
    told = history(EVERYTHING, 15, lambda p: p["uniform"])
    program = (
        "import json, sys; sys.path.insert(0, sys.argv[1]); import test_samplers as t;"
        "print(json.dumps(t.bayes(t.EVERYTHING, t.history(t.EVERYTHING, 15, lambda p: p['uniform']))))"
    )
    folder = str(Path(__file__).parent)
    done = subprocess.run([sys.executable, "-c", program, folder], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == bayes(EVERYTHING, told)


def test_proposals_lie_in_the_space():
    told = history(EVERYTHING, 15, lambda p: p["uniform"])
    for index in range(15, 35):
        found = bayes(EVERYTHING, told, index)
        assert found["choice"] in ("a", "b", "c")
        assert found["randint"] in range(7)
        assert -1 <= found["uniform"] <= 1
        assert found["quniform"] in range(0, 22, 3)
        assert math.exp(-5) <= found["loguniform"] <= 1
        assert found["qloguniform"] in range(0, 56, 2)
        assert found["constant"] == 3
        assert found["qnormal"] % 5 == 0
        assert found["lognormal"] > 0
        assert found["qlognormal"] % 2 == 0
        assert all(isinstance(found[name], int) for name in found if name.startswith("q") or name == "randint")


@pytest.mark.parametrize("name", sorted(set(EVERYTHING) - {"choice", "constant"}))
def test_what_is_told_is_what_was_answered(name):
    """A proposal that is reported back is the same point, except for rounding."""
    leaf = read_space({name: EVERYTHING[name]})[name]
    for index in range(20):
        value = bayes({name: EVERYTHING[name]}, [], index)[name]
        answer = bayesian._to_answer(leaf, value)
        assert bayesian._distribution(leaf)._contains(answer)
        assert bayesian._to_value(leaf, answer) == pytest.approx(value)


@pytest.mark.parametrize("limits", [(1, 9, 2), (1, 10, 4), (0, 3, 2), (-7, 7, 3), (1, 2, 10), (4, 6, 10), (1, 3, 1)])
def test_rounded_values_are_those_of_random_sampling(limits):
    space = read_space({"q": quniform(*limits)})
    drawn = {random.parameters_at(space, 0, n)["q"] for n in range(500)}
    proposed = {bayes({"q": quniform(*limits)}, [], n)["q"] for n in range(100)}
    assert proposed == drawn == set(bayesian._multiples(space["q"]))


@pytest.mark.parametrize(("goal", "sign"), [(MINIMIZE, 1), (MAXIMIZE, -1)])
def test_it_finds_the_valley(goal, sign):
    space = {"x": uniform(-10, 10), "lr": loguniform(-10, 0), "c": choice("good", "bad")}
    told = []
    for index in range(60):
        p = bayes(space, told, index, goal=goal)
        height = (p["x"] - 3) ** 2 + (math.log(p["lr"]) + 4) ** 2 + 5 * (p["c"] == "bad")
        told.append(Observation(p, "ended", sign * height))
    heights = [sign * each.value for each in told]
    assert min(heights) < 2
    assert sum(heights[-20:]) < sum(heights[:20]) / 2


def test_it_learns_which_branch_is_better():
    told = []
    for index in range(50):
        p = bayes(CONDITIONAL, told, index)
        told.append(Observation(p, "ended", 1.0 + p["--lr"] if p["optimizer"]["--name"] == "adam" else p["--lr"]))
    assert Counter(each.parameters["optimizer"]["--name"] for each in told[-20:])["sgd"] >= 15


def test_failed_trials_and_other_spaces_do_no_harm():
    strange = [
        Observation({"x": 5.0}, "ended", 1.0),
        Observation({"lr": "text", "c": 9}, "ended", 2.0),
        Observation({}, "failed"),
        Observation({"x": 0.5, "c": "a"}, "ended", math.nan),
        Observation({"x": 0.5, "c": "a"}, "ended", math.inf),
        Observation({"x": 0.5, "c": "a"}),
    ]
    found = bayes({"x": uniform(0, 1), "c": choice("a", "b")}, strange * 4)
    assert 0 <= found["x"] <= 1


def test_gp_says_what_it_needs(monkeypatch):
    there = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "torch" else there(name))
    with pytest.raises(HyperDriveConfigException, match=r"'gp' needs .*torch"):
        bayes({"x": uniform(0, 1)}, [], algorithm="gp")


def test_without_optuna_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(HyperDriveConfigException, match=r"trainmaster\[tuning\]"):
        bayes({"x": uniform(0, 1)}, [])


def test_optuna_is_loaded_only_when_it_is_asked():
    program = (
        "import sys; import trainmaster.tuning.planning, trainmaster.tuning.samplers.bayesian;"
        "from trainmaster import HyperDriveConfig, BayesianParameterSampling;"
        "print(sorted({'optuna', 'numpy', 'sqlalchemy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("kind", ["random", "grid", "bayesian"])
def test_next_parameters(kind):
    spec = sweep(space={"--lr": choice(1, 2), "--b": choice(3, 4)}, sampling=SamplingSpec(kind, 5))
    found = next_parameters(spec, 0, [])
    assert set(found) == {"--lr", "--b"}
    assert (next_parameters(spec, 4, []) is None) == (kind == "grid")
