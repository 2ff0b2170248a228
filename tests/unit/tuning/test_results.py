"""Which trials are the best."""

import math

import pytest
from sweeps import MAXIMIZE, MINIMIZE, sweep

from trainmaster.shared.records import Status
from trainmaster.tuning.trial import Trial
from trainmaster.tuning.view import best_of, rank_trials, sweep_view, trial_view

TRIALS = [
    Trial(4, {}, Status.RUNNING, (0.5,)),
    Trial(0, {}, Status.COMPLETED, (0.1, 0.5, 0.3)),
    Trial(1, {}, Status.FAILED, (0.9, 0.2)),
    Trial(2, {}, Status.CANCELED, (0.8, 0.05)),
    Trial(3, {}, Status.COMPLETED, ()),
    Trial(5, {}, Status.COMPLETED, (math.nan,)),
]


def view_of(goal, trials):
    shown = [trial_view(goal, trial, f"s_{trial.number}") for trial in trials]
    return sweep_view(sweep(goal=goal), "s", "e", Status.RUNNING, shown)


@pytest.mark.parametrize(
    ("goal", "order"),
    [(MAXIMIZE, [1, 2, 0, 4]), (MINIMIZE, [2, 0, 1, 4])],
)
def test_ranked(goal, order):
    found = rank_trials(view_of(goal, TRIALS))
    assert [trial.number for trial in found] == [*order, 3, 5]
    assert [trial.number for trial in found if trial.best is not None] == order


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
    assert best_of([view_of(goal, TRIALS)], failed, canceled).number == best


def test_of_equal_ones_that_of_the_first_sweep():
    one, other = view_of(MAXIMIZE, [Trial(7, {}, Status.COMPLETED, (0.5,))]), view_of(MAXIMIZE, TRIALS[:2])
    assert best_of([one, other]).number == 7 and best_of([other, one]).number == 0


def test_there_may_be_none():
    assert best_of([view_of(MAXIMIZE, [])]) is None
    assert best_of([view_of(MAXIMIZE, [TRIALS[4], TRIALS[5]])]) is None
