"""What is shown of a sweep: it travels unchanged, ranks, counts and estimates."""

import json
import math

import pytest
from tests.unit.tuning.sweeps import MAXIMIZE, MINIMIZE, sweep

from trainmaster.shared.records import Status
from trainmaster.shared.serialization import from_plain, to_plain
from trainmaster.tuning.parameter_expressions import choice
from trainmaster.tuning.spec import ContinuedTrial, PolicySpec, SamplingSpec
from trainmaster.tuning.trial import Decision, Trial
from trainmaster.tuning.view import (
    SERIES_POINTS,
    SweepView,
    counts,
    policy_in_words,
    rank_trials,
    seconds_left,
    sweep_view,
    total,
    trial_view,
)

CUT = Decision(1, 4, True, "interval 4: run_1 best 0.1 < 0.5: cancelled")


def view_of(*trials, goal=MAXIMIZE, status=Status.RUNNING, times=(), cuts=(), ending="", **changes):
    spec = sweep(goal=goal, **changes)
    began = dict(times)
    shown = [
        trial_view(goal, trial, f"s_{trial.number}", began.get(trial.number), CUT if trial.number in cuts else None)
        for trial in trials
    ]
    return sweep_view(spec, "s", "e", status, shown, started_at=100.0, ending=ending)


def done(number, *values, status=Status.COMPLETED, ended_at=None):
    return Trial(number, {"--lr": 0.5}, status, values, ended_at=ended_at)


def going(number, *values):
    return done(number, *values, status=Status.RUNNING)


def test_there_and_back():
    view = view_of(done(0, 0.5, math.inf, ended_at=120.0), going(1), times={0: 110.0}, cuts=[1])
    assert from_plain(SweepView, json.loads(json.dumps(to_plain(view)))) == view


def test_a_trial_that_reported_no_number_has_no_best():
    view = view_of(done(0, math.nan), done(1))
    assert [trial.best for trial in view.trials] == [None, None]
    assert (view.trials[0].reports, view.best) == (1, None)


def test_long_series_are_thinned_with_their_ends():
    trial = view_of(done(0, *map(float, range(1000)))).trials[0]
    assert (len(trial.series), trial.series[0], trial.series[-1], trial.reports) == (SERIES_POINTS, 0.0, 999.0, 1000)


@pytest.mark.parametrize(("goal", "numbers"), [(MAXIMIZE, [2, 0, 3, 4, 1]), (MINIMIZE, [0, 3, 2, 4, 1])])
def test_the_best_first_then_those_that_go_then_the_others(goal, numbers):
    view = view_of(done(0, 0.5), done(1), done(2, 0.9), going(3, 0.5), going(4), goal=goal)
    assert [trial.number for trial in rank_trials(view)] == numbers
    assert view.best.number == numbers[0]


def test_counts_tell_the_cut_from_the_cancelled():
    view = view_of(
        done(0, 1.0), done(1, 0.1, status=Status.CANCELED), done(2, status=Status.CANCELED),
        done(3, status=Status.FAILED), going(4), cuts=[1],
    )  # fmt: skip
    found = counts(view)
    assert (found.started, found.ended, found.going) == (5, 4, 1)
    assert (found.completed, found.cut, found.canceled, found.failed) == (1, 1, 1, 1)


def test_a_grid_may_be_smaller_than_its_limit():
    grid = SamplingSpec("grid")
    space = {"--a": choice(1, 2), "--b": choice("x", "y")}
    assert total(sweep(max_total_runs=100, sampling=grid, space=space)) == 4
    assert total(sweep(max_total_runs=3, sampling=grid, space=space)) == 3
    assert total(sweep(max_total_runs=100, sampling=grid, space=space, continued=(ContinuedTrial("r", {}),))) == 5
    assert total(sweep(max_total_runs=100)) == 100


def test_the_time_left():
    trials = [done(0, 1.0, ended_at=110.0), done(1, 1.0, ended_at=110.0), going(2), going(3)]
    began = {0: 100.0, 1: 100.0, 2: 110.0, 3: 110.0}
    # Two that have 6 of their 10 seconds left, two more of 10, two at a time.
    assert seconds_left(view_of(*trials, times=began), 114.0) == pytest.approx((6 + 6 + 10 + 10) / 2)
    assert seconds_left(view_of(*trials, times=began, ending="over"), 114.0) == pytest.approx(6)
    assert seconds_left(view_of(*trials, times=began, max_total_runs=10**9), 114.0) == pytest.approx(7 * 86400 - 14)


def test_no_estimate_without_a_trial_that_ended():
    assert seconds_left(view_of(), 114.0) is None
    assert seconds_left(view_of(going(0, 1.0), times={0: 100.0}), 114.0) is None
    assert seconds_left(view_of(done(0, 1.0, ended_at=110.0), status=Status.COMPLETED, times={0: 100.0}), 114.0) is None


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (PolicySpec("median", delay_evaluation=2), "median, from the 2nd"),
        (PolicySpec("bandit", slack_amount=0.2, evaluation_interval=3), "bandit, slack_amount=0.2, every 3 reports"),
        (PolicySpec("hyperband", min_intervals=2, brackets=3), "hyperband, 1 of 3 from report 2, 3 brackets"),
        (PolicySpec("median", delay_evaluation=111), "median, from the 111th"),
    ],
)
def test_policies_in_words(policy, words):
    assert policy_in_words(policy) == words
