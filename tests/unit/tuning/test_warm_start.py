"""Starting from earlier sweeps and runs."""

import math
from dataclasses import replace

import pytest
from sweeps import MINIMIZE, sweep

from trainmaster.job.errors import HyperDriveConfigException
from trainmaster.shared.records import Status
from trainmaster.tuning.parameter_expressions import uniform
from trainmaster.tuning.spec import ContinuedTrial, EarlierTrial, SamplingSpec
from trainmaster.tuning.trial import Trial
from trainmaster.tuning.warm_start import EarlierChild, EarlierSweep, with_history

TRIALS = (
    Trial(0, {"--lr": 0.1}, Status.COMPLETED, (0.5, 0.7, 0.6)),
    Trial(1, {"--lr": 0.2}, Status.CANCELED, (0.3,)),
    Trial(2, {"--lr": 0.3}, Status.FAILED, (0.9,)),
    Trial(3, {"--lr": 0.4}, Status.COMPLETED),
    Trial(4, {"--lr": 0.5}, Status.COMPLETED, (math.nan,)),
)
OLD = EarlierSweep("old", Status.COMPLETED, sweep(), TRIALS)
CHILD = EarlierChild("old_1", Status.CANCELED, "old", {"--lr": 0.2})


def test_what_a_sweep_gets():
    spec = with_history(sweep(), [OLD, replace(OLD, run_id="older", status=Status.CANCELED, trials=())], [CHILD])
    assert spec.earlier == (EarlierTrial({"--lr": 0.1}, 0.7), EarlierTrial({"--lr": 0.2}, 0.3))
    assert spec.continued == (ContinuedTrial("old_1", {"--lr": 0.2}),)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"status": Status.RUNNING}, "old is Running; it must be Completed or Canceled\nWait"),
        ({"status": Status.FAILED}, "old is Failed"),
        ({"spec": sweep(metric="loss")}, "a different primary metric or goal"),
        ({"spec": sweep(goal=MINIMIZE)}, "a different primary metric or goal"),
    ],
)
def test_sweeps_that_do_not_fit(changes, message):
    with pytest.raises(HyperDriveConfigException, match=message):
        with_history(sweep(), [replace(OLD, **changes)], [])


def test_only_bayesian_sampling_wants_the_same_space():
    other = replace(OLD, spec=sweep(space={"--lr": uniform(0, 2)}))
    with_history(sweep(), [other], [])
    with pytest.raises(HyperDriveConfigException, match="a different parameter space"):
        with_history(sweep(sampling=SamplingSpec("bayesian")), [other], [])


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"status": Status.RUNNING}, "old_1 is Running"), ({"parent_id": None}, "is not a run of a sweep")],
)
def test_children_that_do_not_fit(changes, message):
    with pytest.raises(HyperDriveConfigException, match=message):
        with_history(sweep(), [], [replace(CHILD, **changes)])
