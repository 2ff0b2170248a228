"""Which trials are the best."""

import math

import pytest
from sweeps import MAXIMIZE, MINIMIZE

from trainmaster.records import Status
from trainmaster.tuning.results import best_trial, ranked
from trainmaster.tuning.trial import Trial

TRIALS = [
    Trial(4, {}, Status.RUNNING, (0.5,)),
    Trial(0, {}, Status.COMPLETED, (0.1, 0.5, 0.3)),
    Trial(1, {}, Status.FAILED, (0.9, 0.2)),
    Trial(2, {}, Status.CANCELED, (0.8, 0.05)),
    Trial(3, {}, Status.COMPLETED, ()),
    Trial(5, {}, Status.COMPLETED, (math.nan,)),
]


@pytest.mark.parametrize(
    ("goal", "order"),
    [(MAXIMIZE, [1, 2, 0, 4]), (MINIMIZE, [2, 0, 1, 4])],
)
def test_ranked(goal, order):
    assert [trial.number for trial in ranked(goal, TRIALS)] == [*order, 3, 5]
    assert [trial.number for trial in ranked(goal, TRIALS, discard_no_metric=True)] == order


@pytest.mark.parametrize(
    ("goal", "failed", "canceled", "best"),
    [
        (MAXIMIZE, True, True, 1),
        (MAXIMIZE, False, True, 2),
        (MAXIMIZE, False, False, 0),
        (MINIMIZE, True, True, 2),
        (MINIMIZE, True, False, 0),
    ],
)
def test_best(goal, failed, canceled, best):
    assert best_trial(goal, TRIALS, failed, canceled).number == best


def test_there_may_be_none():
    assert best_trial(MAXIMIZE, []) is None
    assert best_trial(MAXIMIZE, [TRIALS[4], TRIALS[5]]) is None
