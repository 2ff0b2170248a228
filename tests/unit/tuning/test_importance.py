"""How much parameters matter."""

from __future__ import annotations

import math
import random

from trainmaster.tuning.importance import LEAST_TRIALS, rate_parameters


def make_trials(count: int = 200):
    """The metric depends on lr, a little on layers and not at all on seed and color."""
    chance = random.Random(7)
    for _ in range(count):
        lr, layers = 10 ** chance.uniform(-4, -1), chance.choice([1, 2, 3])
        parameters = {"lr": lr, "layers": layers, "seed": chance.random(), "color": chance.choice(["red", "blue"])}
        yield parameters, math.log10(lr) + 0.4 * layers + chance.gauss(0, 0.05)


def test_what_matters_comes_first():
    found = rate_parameters(list(make_trials()))
    assert [each.name for each in found.parameters][:2] == ["lr", "layers"] and found.trials == 200
    by_name = {each.name: each for each in found.parameters}
    assert by_name["lr"].importance > 0.6 and by_name["lr"].correlation > 0.8
    assert 0.02 < by_name["layers"].importance < 0.4
    assert by_name["seed"].importance < 0.05 and by_name["color"].importance < 0.05
    assert by_name["color"].correlation is None
    # The same trials give the same answer.
    assert rate_parameters(list(make_trials())) == found


def test_a_parameter_that_matters_in_the_middle_is_found():
    """Correlation alone would not see it."""
    trials = [({"x": n / 50}, (n / 50 - 1) ** 2) for n in range(101)]
    (found,) = rate_parameters(trials).parameters
    assert found.importance > 0.8 and abs(found.correlation) < 0.1


def test_words_lists_and_parameters_that_some_trials_lack():
    trials = [({"kind": "a", "sizes": [1, 2]}, 1.0 + n / 100) for n in range(6)]
    trials += [({"kind": "b", "sizes": [1, 2], "depth": 3}, 9.0 + n / 100) for n in range(6)]
    found = {each.name: each for each in rate_parameters(trials).parameters}
    assert found["kind"].importance > 0.7 and found["sizes"].importance == 0 and found["sizes"].correlation is None
    assert found["depth"].trials == 6 and found["depth"].importance > 0.7 and found["depth"].correlation is None


def test_too_little_to_say_anything():
    assert rate_parameters([]).notice
    few = [({"x": n}, float(n)) for n in range(LEAST_TRIALS - 1)] + [({"x": 9}, None), ({"x": 9}, math.nan)]
    assert rate_parameters(few).notice and rate_parameters(few).trials == LEAST_TRIALS - 1
    assert rate_parameters([({"x": n}, 1.0) for n in range(9)]).notice
    # One trial for each value explains nothing.
    (found,) = rate_parameters([({"x": str(n)}, float(n)) for n in range(9)]).parameters
    assert found.importance == 0
