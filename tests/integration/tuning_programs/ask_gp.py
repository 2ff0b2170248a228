"""Asks the GP sampler of Trainmaster itself, in a Python that has torch, scipy and Optuna; prints what it said.

python ask_gp.py <folder of Trainmaster's source>
"""

import json
import math
import sys

# Before the kit of the job, which has no samplers.
sys.path.insert(0, sys.argv[1])

from trainmaster.tuning.goal import PrimaryMetricGoal
from trainmaster.tuning.parameter_expressions import choice, loguniform, uniform
from trainmaster.tuning.samplers import Observation, bayesian
from trainmaster.tuning.space import read_space
from trainmaster.tuning.spec import SamplingSpec

SPACE = read_space({"--x": uniform(0, 1), "--lr": loguniform(-9, 0), "--kind": choice("good", "bad")})
RANDOM, ASKED = 10, 12


def loss(parameters):
    far = math.log(parameters["--lr"]) + 4
    return (parameters["--x"] - 0.3) ** 2 + far**2 / 50 + (parameters["--kind"] == "bad")


def ask(index, told):
    return bayesian.propose(
        SPACE, SamplingSpec("bayesian", seed=7, algorithm="gp"), PrimaryMetricGoal.MINIMIZE, index, told
    )


def main():
    told = []
    for index in range(RANDOM + ASKED):
        found = ask(index, told)
        told.append(Observation(found, "ended", loss(found)))
    going = [*told, Observation(told[0].parameters), Observation(told[1].parameters, "failed")]
    answer = {
        "losses": [each.value for each in told],
        "parameters": [dict(each.parameters) for each in told],
        "twice": [ask(99, told), ask(99, told)],
        "with others going": ask(99, going),
        "modules": sorted({"torch", "scipy", "optuna"} & set(sys.modules)),
    }
    print(json.dumps(answer))


main()
