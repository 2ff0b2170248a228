"""SweepSpec: there and back, and what cannot be read."""

import json

import pytest
from sweeps import MINIMIZE, sweep

from trainmaster.job.errors import HyperDriveRehydrateException
from trainmaster.tuning.parameter_expressions import choice, uniform
from trainmaster.tuning.spec import (
    ContinuedTrial,
    EarlierTrial,
    PolicySpec,
    SamplingSpec,
    dump_sweep,
    load_sweep,
)


def test_there_and_back():
    spec = sweep(
        goal=MINIMIZE,
        space={"z": uniform(0, 1), "a": choice({"m": uniform(0, 1)}, {"b": [1, 2]})},
        sampling=SamplingSpec("bayesian", 2**31, "gp"),
        policy=PolicySpec("bandit", 2, 3, slack_factor=0.1),
        resume_from=("a_1",),
        resume_child_runs=("a_1_0",),
        earlier=(EarlierTrial({"z": 0.5}, 0.25),),
        continued=(ContinuedTrial("a_1_0", {"z": 0.5}),),
        custom_run_id="mine",
    )
    again = load_sweep(dump_sweep(spec))
    assert again == spec
    assert list(again.space) == ["z", "a"]


def changed(**changes):
    return json.dumps({**json.loads(dump_sweep(sweep())), **changes})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "must be an object"),
        (changed(version=99), "reads up to 1"),
        (changed(goal="UP"), "must be one of MAXIMIZE, MINIMIZE"),
        (changed(space={}), "parameter_space"),
        (changed(space={"lr": ["uniform", [2, 1]]}), "less than max_value"),
        (changed(surprise=1), "unknown keys: surprise"),
        (changed(max_total_runs=0), "max_total_runs=0 must be at least 1"),
        (changed(max_concurrent_runs=0), "max_concurrent_runs=0"),
        (changed(policy={"kind": "bandit"}), "either slack_factor or slack_amount"),
        (changed(policy={"kind": "truncation"}), "truncation_percentage=0"),
        (changed(policy={"kind": "median", "evaluation_interval": 0}), "evaluation_interval=0"),
        (changed(policy={"kind": "hyperband", "reduction_factor": 1}), "reduction_factor=1"),
    ],
)
def test_what_cannot_be_read(text, message):
    with pytest.raises(HyperDriveRehydrateException, match=message):
        load_sweep(text)
