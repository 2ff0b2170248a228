"""What a sweep does next."""

import math

import pytest
from sweeps import MAXIMIZE, MINIMIZE, sweep

from trainmaster.shared.records import Status
from trainmaster.tuning.history import History
from trainmaster.tuning.parameter_expressions import choice
from trainmaster.tuning.planning import Cancel, Ending, SweepState, plan
from trainmaster.tuning.spec import ContinuedTrial, EarlierTrial, PolicySpec, SamplingSpec
from trainmaster.tuning.trial import Trial

BANDIT = PolicySpec("bandit", slack_factor=0.1)
GRID = {"sampling": SamplingSpec("grid"), "space": {"--lr": choice(1, 2, 3)}}


def trial(number, status="Running", values=(), **more):
    ended_at = float(number) if status in ("Completed", "Failed", "Canceled") else None
    return Trial(number, {"--lr": 0.5}, Status(status), tuple(values), **{"ended_at": ended_at, **more})


def state(*trials, **more):
    return SweepState(0.0, History(trials), **more)


def numbers(steps):
    return [each.number for each in steps]


def test_a_new_sweep_starts_as_many_as_may_run_at_once():
    found = plan(sweep(max_concurrent_runs=3), state(), 0.0)
    assert numbers(found.starts) == [0, 1, 2]
    assert len({each.parameters["--lr"] for each in found.starts}) == 3
    assert (found.cancels, found.ending, found.finish, found.warnings) == ((), None, None, ())


@pytest.mark.parametrize("status", ["NotStarted", "Preparing", "Queued", "Running", "CancelRequested", "Finalizing"])
def test_a_trial_has_its_place_until_it_has_ended(status):
    assert plan(sweep(), state(trial(0, status), trial(1, status)), 0.0).starts == ()
    assert numbers(plan(sweep(), state(trial(0, status), trial(1, "Completed", [1])), 0.0).starts) == [2]


def test_no_more_than_in_all():
    ended = [trial(n, "Completed", [0.5]) for n in range(5)]
    assert numbers(plan(sweep(), state(*ended), 0.0).starts) == [5]
    found = plan(sweep(), state(*ended, trial(5, "Completed", [0.5])), 0.0)
    assert (found.starts, found.finish) == ((), Ending(Status.COMPLETED, "all 6 trials have ended"))


def test_a_trial_that_is_not_there_is_started_again_with_the_same_parameters():
    first = plan(sweep(max_concurrent_runs=3), state(), 0.0).starts
    kept = [Trial(each.number, each.parameters) for each in first if each.number != 1]
    assert plan(sweep(max_concurrent_runs=3), state(*kept), 0.0).starts == (first[1],)


def test_a_grid_ends_when_it_is_exhausted():
    found = plan(sweep(**GRID, max_concurrent_runs=6), state(), 0.0)
    assert [each.parameters for each in found.starts] == [{"--lr": 1}, {"--lr": 2}, {"--lr": 3}]
    ended = [trial(n, "Completed", [0.5]) for n in range(3)]
    assert plan(sweep(**GRID), state(*ended), 0.0).finish == Ending(Status.COMPLETED, "all 3 trials have ended")


def test_a_policy_cuts():
    found = plan(sweep(policy=BANDIT), state(trial(0, values=[0.9]), trial(1, values=[0.81])), 0.0)
    words = "interval 1: run_1 best 0.81 < 0.9/(1+0.1) = 0.818182: cancelled"
    assert [each.cut for each in found.decisions] == [False, True]
    assert found.cancels == (Cancel(1, words),)
    # What was cut still has its place.
    assert found.starts == ()


def test_a_decision_is_not_made_again():
    found = plan(sweep(policy=BANDIT), state(trial(0, values=[0.9], judged=1), trial(1, values=[0.81], judged=1)), 0.0)
    assert (found.decisions, found.cancels) == ((), ())


@pytest.mark.parametrize(
    ("trials", "ending"),
    [
        (
            [trial(0, "Completed", [0.5]), trial(1)],
            Ending(Status.COMPLETED, "max_duration_minutes=10 have passed"),
        ),
        (
            [trial(0, "Completed", metric_names=("acc",)), trial(1)],
            Ending(
                Status.FAILED,
                "max_duration_minutes=10 have passed, and no trial has logged the primary metric 'accuracy'; "
                "logged instead: 'acc'",
            ),
        ),
    ],
)
def test_time_is_up(trials, ending):
    spec = sweep(max_duration_minutes=10)
    assert plan(spec, state(*trials), 599.9).ending is None
    found = plan(spec, state(*trials), 600.0)
    assert (found.ending, found.cancels, found.starts, found.finish) == (ending, (Cancel(1, ending.reason),), (), None)
    ended = [*trials[:1], trial(1, "Canceled")]
    assert plan(spec, state(*ended, ending=ending), 700.0).finish == ending


def test_time_does_not_matter_to_a_sweep_that_is_done():
    ended = [trial(n, "Completed", [0.5]) for n in range(6)]
    assert plan(sweep(), state(*ended), 1e9).finish.reason == "all 6 trials have ended"


def test_many_failures_in_a_row_end_it():
    failed = [trial(n, "Failed", error="ScriptFailed: exit code 1") for n in range(3)]
    spec = sweep(max_failures_in_a_row=3)
    assert plan(spec, state(*failed[:2]), 0.0).ending is None
    found = plan(spec, state(*failed, trial(3)), 0.0)
    reason = "3 trials in a row failed; the last: run_2, ScriptFailed: exit code 1"
    assert (found.ending, found.cancels) == (Ending(Status.FAILED, reason), (Cancel(3, reason),))
    # Even if the ending was not kept: trials that were cancelled for it do not change it.
    assert plan(spec, state(*failed, trial(3, "Canceled", [0.5])), 0.0).finish == Ending(Status.FAILED, reason)


@pytest.mark.parametrize(
    ("between", "ends"),
    [
        (trial(2, "Completed", [0.5]), False),
        (trial(2, "Completed"), False),
        (trial(2, "Canceled", [0.5]), False),
        (trial(2, "Canceled"), True),
        (trial(2, "Failed", [0.5]), True),
        (trial(2, "Running", [0.5]), True),
    ],
)
def test_what_interrupts_a_row_of_failures(between, ends):
    others = [trial(n, "Failed") for n in (0, 1, 3)]
    found = plan(sweep(max_failures_in_a_row=3, max_concurrent_runs=6), state(*others, between), 0.0)
    assert (found.ending is not None) == ends


def test_a_row_is_in_the_order_of_the_ends():
    late = trial(1, "Completed", [0.5], ended_at=9.0)
    failed = [trial(n, "Failed") for n in (0, 2, 3)]
    assert plan(sweep(max_failures_in_a_row=3), state(late, *failed), 0.0).ending is not None


def test_a_failing_trial_does_not_end_it():
    found = plan(sweep(), state(trial(0, "Failed"), trial(1)), 0.0)
    assert (found.ending, numbers(found.starts)) == (None, [2])


def test_all_failed():
    spec = sweep(max_total_runs=2)
    found = plan(spec, state(trial(0, "Failed"), trial(1, "Failed", [0.9], error="boom")), 0.0)
    assert found.finish == Ending(Status.FAILED, "2 of 2 trials failed, none completed; the last: run_1, boom")


def test_some_failed():
    found = plan(sweep(max_total_runs=2), state(trial(0, "Failed"), trial(1, "Completed", [0.9])), 0.0)
    assert found.finish.status == Status.COMPLETED


def test_all_cancelled_by_hand():
    found = plan(sweep(max_total_runs=2), state(trial(0, "Canceled"), trial(1, "Canceled")), 0.0)
    assert found.finish == Ending(Status.CANCELED, "all 2 trials were cancelled")


def test_the_metric_is_missed_when_the_first_trial_ends():
    first = trial(0, "Completed", metric_names=("val_acc", "loss"))
    found = plan(sweep(), state(first, trial(1)), 0.0)
    warning = "run_0 completed without logging the primary metric 'accuracy'; logged instead: 'loss', 'val_acc'"
    assert (found.warnings, found.ending, numbers(found.starts)) == ((warning,), None, [2])
    # It stays the same, whatever comes.
    assert plan(sweep(), state(first, trial(1, "Completed", [0.5])), 0.0).warnings == (warning,)


def test_a_metric_that_is_no_number_is_told_as_such():
    first = trial(0, "Completed", metric_names=("accuracy", "loss"))
    (warning,) = plan(sweep(), state(first, trial(1)), 0.0).warnings
    assert warning == (
        "run_0 completed without logging the primary metric 'accuracy' as a number; "
        "it is text, a row, a table or an image"
    )


def test_nan_is_no_number():
    ended = [trial(n, "Completed", [math.nan, math.nan], metric_names=("accuracy",)) for n in range(3)]
    (warning,) = plan(sweep(), state(ended[0], trial(1)), 0.0).warnings
    words = "the primary metric 'accuracy' as a number; its values are NaN"
    assert warning == f"run_0 completed without logging {words}"
    found = plan(sweep(max_failures_in_a_row=3), state(*ended, trial(3)), 0.0)
    assert found.ending == Ending(Status.FAILED, f"3 trials completed, and none logged {words}")


@pytest.mark.parametrize("first", [trial(0, "Failed"), trial(0, "Canceled"), trial(0), trial(0, "Completed", [0.5])])
def test_the_metric_is_not_missed_before(first):
    assert plan(sweep(), state(first, trial(1)), 0.0).warnings == ()


def test_a_metric_that_never_appears_ends_it():
    ended = [trial(n, "Completed") for n in range(3)]
    spec = sweep(max_failures_in_a_row=3)
    found = plan(spec, state(*ended, trial(3)), 0.0)
    reason = "3 trials completed, and none logged the primary metric 'accuracy'; nothing was logged"
    assert (found.ending, numbers(found.cancels)) == (Ending(Status.FAILED, reason), [3])
    assert plan(spec, state(*ended, trial(3, values=[0.1])), 0.0).ending is None
    kept = state(*ended, trial(3, "Canceled", [0.1]), ending=found.ending)
    assert plan(spec, kept, 0.0).finish == found.ending


def test_a_small_sweep_without_its_metric_has_failed():
    ended = [trial(n, "Completed", metric_names=("acc",)) for n in range(2)]
    found = plan(sweep(max_total_runs=2), state(*ended), 0.0)
    reason = "all 2 trials have ended, and none logged the primary metric 'accuracy'; logged instead: 'acc'"
    assert found.finish == Ending(Status.FAILED, reason)


def test_cancelled():
    made = [trial(0, "Completed", [0.5]), trial(1), trial(2, "CancelRequested")]
    found = plan(sweep(max_concurrent_runs=4), state(*made, cancel_requested=True), 0.0)
    assert (numbers(found.cancels), found.starts, found.finish) == ([1], (), None)
    ended = [made[0], trial(1, "Canceled"), trial(2, "Canceled")]
    assert plan(sweep(), state(*ended, cancel_requested=True), 0.0).finish.status == Status.CANCELED
    assert plan(sweep(), state(cancel_requested=True), 0.0).finish.status == Status.CANCELED


def test_continued_trials_come_first():
    continued = tuple(ContinuedTrial(f"old_{n}", {"--lr": n}) for n in (4, 7))
    found = plan(sweep(**GRID, continued=continued, max_concurrent_runs=6), state(), 0.0)
    assert [(each.continues, each.parameters["--lr"]) for each in found.starts] == [
        ("old_4", 4),
        ("old_7", 7),
        ("", 1),
        ("", 2),
        ("", 3),
    ]


@pytest.mark.parametrize(("goal", "side"), [(MAXIMIZE, True), (MINIMIZE, False)])
def test_earlier_sweeps_teach_bayesian_sampling(goal, side):
    values = [n / 40 for n in range(1, 40)]
    earlier = tuple(EarlierTrial({"--lr": 0.1 + 0.8 * x, "--batch": 16 if x > 0.5 else 32}, x) for x in values)
    spec = sweep(goal=goal, sampling=SamplingSpec("bayesian", 1), earlier=earlier, max_concurrent_runs=6)
    found = [each.parameters["--lr"] for each in plan(spec, state(), 0.0).starts]
    assert sum((lr > 0.5) == side for lr in found) >= 5


def test_trials_that_start_together_are_those_that_would_start_one_by_one():
    """A dispatcher may be killed between two of them."""
    earlier = tuple(EarlierTrial({"--lr": 0.1 + n / 50, "--batch": 16}, n / 40) for n in range(30))
    spec = sweep(sampling=SamplingSpec("bayesian", 1), earlier=earlier, max_concurrent_runs=4)
    together = plan(spec, state(), 0.0).starts
    for count in range(1, 4):
        kept = [Trial(each.number, each.parameters) for each in together[:count]]
        assert plan(spec, state(*kept), 0.0).starts == together[count:]
