"""The policies' decisions, as tables of worked examples."""

import math

import pytest
from sweeps import MAXIMIZE, MINIMIZE

from trainmaster.shared.records import Status
from trainmaster.tuning.decisions import decide, due
from trainmaster.tuning.policies import (
    BanditPolicy,
    HyperbandPolicy,
    MedianStoppingPolicy,
    NoTerminationPolicy,
    TruncationSelectionPolicy,
)
from trainmaster.tuning.trial import Trial

NAN = math.nan


def trials(*series, judged=0, **statuses):
    """Trials that run, with these reports; `run_0="Completed"` gives one another state."""
    return [
        Trial(n, {}, Status(statuses.get(f"run_{n}", "Running")), tuple(map(float, values)), judged)
        for n, values in enumerate(series)
    ]


def cut(policy, goal, made):
    """The trials that are cut, with the interval; a trial that was cut is not judged again."""
    found = {}
    for each in decide(policy.compile(), goal, made):
        assert each.number not in found
        if each.cut:
            found[each.number] = each.interval
    return found


# ---- when


@pytest.mark.parametrize(
    ("interval", "delay", "after", "upto", "looked_at"),
    [
        (1, 0, 0, 3, [1, 2, 3]),
        (1, 0, 2, 3, [3]),
        (1, 0, 3, 3, []),
        (1, 5, 0, 7, [5, 6, 7]),
        (2, 0, 0, 7, [2, 4, 6]),
        (2, 5, 0, 9, [6, 8]),
        (2, 4, 0, 5, [4]),
        (3, 3, 0, 3, [3]),
        (3, 4, 0, 5, []),
        (5, 0, 0, 4, []),
        (2, 0, 4, 6, [6]),
        (1, 0, 0, 0, []),
    ],
)
def test_a_policy_acts_at_multiples_of_its_interval_from_the_delay_on(interval, delay, after, upto, looked_at):
    policy = MedianStoppingPolicy(evaluation_interval=interval, delay_evaluation=delay).compile()
    assert list(due(policy, 0, after, upto)) == looked_at


# ---- bandit

BANDIT = [
    # goal, policy, reports of run_0, run_1, ..., who is cut at which interval
    # slack_factor, maximise: the limit is 0.9 / 1.1 = 0.818...
    (MAXIMIZE, {"slack_factor": 0.1}, [[0.9], [0.81]], {1: 1}),
    (MAXIMIZE, {"slack_factor": 0.1}, [[0.9], [0.82]], {}),
    # the documents' own example: 0.8 / 1.2 = 0.666...
    (MAXIMIZE, {"slack_factor": 0.2}, [[0.8], [0.66], [0.67]], {1: 1}),
    # exactly at the limit is not behind it
    (MAXIMIZE, {"slack_factor": 1.0}, [[0.8], [0.4], [0.3999]], {2: 1}),
    (MAXIMIZE, {"slack_factor": 0}, [[0.8], [0.8], [0.79]], {2: 1}),
    # slack_amount, maximise: 0.8 - 0.2
    (MAXIMIZE, {"slack_amount": 0.25}, [[0.75], [0.5], [0.49]], {2: 1}),
    # minimise: 2.0 * 1.1 = 2.2 and 2.0 + 0.5
    (MINIMIZE, {"slack_factor": 0.1}, [[2.0], [2.21], [2.19]], {1: 1}),
    (MINIMIZE, {"slack_amount": 0.5}, [[2.0], [2.5], [2.51]], {2: 1}),
    # the best so far counts, not the last
    (MAXIMIZE, {"slack_factor": 0.1, "delay_evaluation": 2}, [[0.9, 0.1], [0.9, 0.2]], {}),
    (MINIMIZE, {"slack_factor": 0.1, "delay_evaluation": 2}, [[1, 9], [1, 8]], {}),
    # compared at the same interval: run_0 was not better than run_1 when it was as young
    (MAXIMIZE, {"slack_factor": 0.1}, [[0.1, 0.5, 0.9], [0.1]], {}),
    (MAXIMIZE, {"slack_factor": 0.1}, [[0.5, 0.5, 0.9], [0.1]], {1: 1}),
    # who has not come as far does not count
    (MAXIMIZE, {"slack_factor": 0.1, "delay_evaluation": 3}, [[0.9, 0.9], [0.1, 0.1, 0.1]], {}),
    # delay and interval
    (MAXIMIZE, {"slack_factor": 0.1, "delay_evaluation": 3}, [[0.9] * 3, [0.1] * 2], {}),
    (MAXIMIZE, {"slack_factor": 0.1, "delay_evaluation": 3}, [[0.9] * 3, [0.1] * 3], {1: 3}),
    (MAXIMIZE, {"slack_factor": 0.1, "evaluation_interval": 2}, [[0.9] * 3, [0.1] * 1], {}),
    (MAXIMIZE, {"slack_factor": 0.1, "evaluation_interval": 2}, [[0.9] * 3, [0.1] * 3], {1: 2}),
    (MAXIMIZE, {"slack_factor": 0.1, "evaluation_interval": 2, "delay_evaluation": 3}, [[0.9] * 4, [0.1] * 3], {}),
    (MAXIMIZE, {"slack_factor": 0.1, "evaluation_interval": 2, "delay_evaluation": 3}, [[0.9] * 4, [0.1] * 4], {1: 4}),
    # reports that arrive together are judged one by one, and the first bad one cuts
    (MAXIMIZE, {"slack_factor": 0.1}, [[0.1, 0.9, 0.9], [0.1, 0.2, 0.9]], {1: 2}),
    # a single trial, or no data: no trial is cut
    (MAXIMIZE, {"slack_factor": 0.1}, [[0.001]], {}),
    (MAXIMIZE, {"slack_factor": 0.1}, [[], [], []], {}),
    (MAXIMIZE, {"slack_factor": 0.1}, [[0.5], [], []], {}),
    # below zero the leader is not behind its own limit
    (MAXIMIZE, {"slack_factor": 0.1}, [[-1.0], [-1.09], [-1.11]], {2: 1}),
    (MINIMIZE, {"slack_factor": 0.1}, [[-1.1], [-1.01], [-0.99]], {2: 1}),
    (MAXIMIZE, {"slack_factor": 0.1}, [[0.0], [-0.1]], {1: 1}),
    # NaN is worse than every number
    (MAXIMIZE, {"slack_factor": 0.1}, [[0.5], [NAN], [NAN]], {1: 1, 2: 1}),
    (MINIMIZE, {"slack_amount": 0.1}, [[0.5], [NAN, 0.5]], {1: 1}),
    (MAXIMIZE, {"slack_factor": 0.1}, [[NAN], [NAN]], {}),
]


@pytest.mark.parametrize(("goal", "policy", "series", "expected"), BANDIT)
def test_bandit(goal, policy, series, expected):
    assert cut(BanditPolicy(**policy), goal, trials(*series)) == expected


# ---- median

MEDIAN = [
    # averages 0.9, 0.6, 0.3; median 0.6
    (MAXIMIZE, {}, [[0.9], [0.6], [0.3]], {2: 1}),
    (MINIMIZE, {}, [[0.9], [0.6], [0.3]], {0: 1}),
    # an even count: the median of 0.8 and 0.2 is 0.5
    (MAXIMIZE, {}, [[0.8], [0.2]], {1: 1}),
    # at interval 3 run_2 has the best 0.5; averages 0.6, 0.4, 0.3; median 0.4: its best is better
    (MAXIMIZE, {"delay_evaluation": 3}, [[0.4, 0.6, 0.8], [0.3, 0.4, 0.5], [0.1, 0.5, 0.3]], {}),
    # with best 0.35 it is worse than the median 0.4
    (MAXIMIZE, {"delay_evaluation": 3}, [[0.4, 0.6, 0.8], [0.3, 0.4, 0.5], [0.1, 0.35, 0.3]], {2: 3}),
    (MINIMIZE, {"delay_evaluation": 2}, [[4, 2], [3, 1], [9, 5]], {2: 2}),
    # the average of the first N reports, not of all
    (MAXIMIZE, {}, [[0.3, 0.9, 0.9], [0.3]], {}),
    # the mean of equal values is that value, however it is rounded
    (MAXIMIZE, {}, [[0.1] * 20, [0.1] * 20], {}),
    (MAXIMIZE, {"evaluation_interval": 2}, [[0.9], [0.9], [0.1]], {}),
    (MAXIMIZE, {"evaluation_interval": 2}, [[0.9] * 2, [0.9] * 2, [0.1] * 3], {2: 2}),
    # equal to the median is not worse
    (MAXIMIZE, {}, [[0.5], [0.5], [0.5]], {}),
    (MAXIMIZE, {}, [[0.1]], {}),
    (MAXIMIZE, {}, [[], []], {}),
    (MAXIMIZE, {}, [[NAN]], {}),
    (MAXIMIZE, {}, [[NAN], [0.5]], {0: 1}),
]


@pytest.mark.parametrize(("goal", "policy", "series", "expected"), MEDIAN)
def test_median(goal, policy, series, expected):
    assert cut(MedianStoppingPolicy(**policy), goal, trials(*series)) == expected


# ---- truncation

TEN = [[n / 10] for n in range(10)]
TRUNCATION = [
    (MAXIMIZE, {"truncation_percentage": 20}, TEN, {0: 1, 1: 1}),
    (MINIMIZE, {"truncation_percentage": 20}, TEN, {8: 1, 9: 1}),
    (MAXIMIZE, {"truncation_percentage": 99}, TEN, dict.fromkeys(range(9), 1)),
    # a fifth of four is less than one trial
    (MAXIMIZE, {"truncation_percentage": 20}, TEN[:4], {}),
    (MAXIMIZE, {"truncation_percentage": 20}, TEN[:5], {0: 1}),
    (MAXIMIZE, {"truncation_percentage": 50}, [[0.5], [0.5]], {1: 1}),
    (MAXIMIZE, {"truncation_percentage": 99}, [[0.5]], {}),
    (MAXIMIZE, {"truncation_percentage": 50, "delay_evaluation": 2}, [[0.1], [0.2]], {}),
    (MAXIMIZE, {"truncation_percentage": 50, "delay_evaluation": 2}, [[0.1, 0.1], [0.2, 0.2]], {0: 2}),
    (MAXIMIZE, {"truncation_percentage": 50, "evaluation_interval": 3}, [[0.1] * 4, [0.2] * 2, [0.3] * 3], {0: 3}),
    (MAXIMIZE, {"truncation_percentage": 50}, [[NAN], [0.2]], {0: 1}),
    (MAXIMIZE, {"truncation_percentage": 50}, [[], []], {}),
]


@pytest.mark.parametrize(("goal", "policy", "series", "expected"), TRUNCATION)
def test_truncation(goal, policy, series, expected):
    assert cut(TruncationSelectionPolicy(**policy), goal, trials(*series)) == expected


# ---- Hyperband

HYPERBAND = [
    # rungs at 1, 3, 9; a third continues
    (MAXIMIZE, {}, [[0.3], [0.2], [0.1]], {1: 1, 2: 1}),
    (MINIMIZE, {}, [[0.3], [0.2], [0.1]], {0: 1, 1: 1}),
    (MAXIMIZE, {}, [[0.3], [0.1]], {}),
    (MAXIMIZE, {"reduction_factor": 2}, [[0.3], [0.1]], {1: 1}),
    (MAXIMIZE, {"min_intervals": 2, "reduction_factor": 2}, [[0.3], [0.1]], {}),
    (MAXIMIZE, {"min_intervals": 2, "reduction_factor": 2}, [[0.3] * 2, [0.1] * 2], {1: 2}),
    # two brackets: even numbers are judged from 1 on, odd ones from 2 on, each among themselves
    (MAXIMIZE, {"reduction_factor": 2, "brackets": 2}, [[0.9], [0.8], [0.7], [0.6]], {2: 1}),
    (MAXIMIZE, {"reduction_factor": 2, "brackets": 2}, [[0.9], [0.8] * 2, [0.95], [0.6] * 2], {0: 1, 3: 2}),
    (MAXIMIZE, {}, [[]], {}),
]


@pytest.mark.parametrize(("goal", "policy", "series", "expected"), HYPERBAND)
def test_hyperband(goal, policy, series, expected):
    assert cut(HyperbandPolicy(**policy), goal, trials(*series)) == expected


def test_rungs_of_hyperband():
    policy = HyperbandPolicy(min_intervals=2, reduction_factor=3, brackets=2).compile()
    assert list(due(policy, 0, 0, 60)) == [2, 6, 18, 54]
    assert list(due(policy, 1, 0, 60)) == [6, 18, 54]
    assert list(due(policy, 2, 6, 60)) == [18, 54]


# ---- all of them

ALL = [
    BanditPolicy(slack_factor=0.1),
    BanditPolicy(slack_amount=0.1),
    MedianStoppingPolicy(),
    TruncationSelectionPolicy(50),
    HyperbandPolicy(reduction_factor=2),
]


@pytest.mark.parametrize("policy", ALL)
@pytest.mark.parametrize("status", ["Completed", "Failed", "Canceled", "CancelRequested", "Finalizing"])
def test_who_has_ended_counts_and_is_not_cut(policy, status):
    assert cut(policy, MAXIMIZE, trials([0.9], [0.1], run_0=status)) == {1: 1}
    assert cut(policy, MAXIMIZE, trials([0.9], [0.1], run_1=status)) == {}


@pytest.mark.parametrize("policy", ALL)
@pytest.mark.parametrize("goal", [MAXIMIZE, MINIMIZE])
@pytest.mark.parametrize("value", [0.5, -0.5, 0.0, 1e300, -1e300, math.inf, -math.inf, NAN])
def test_the_first_one_is_never_cut_without_data(policy, goal, value):
    assert cut(policy, goal, trials([value] * 10, [], [])) == {}


@pytest.mark.parametrize("policy", ALL)
def test_nothing_is_decided_twice(policy):
    made = trials([0.9, 0.9], [0.1, 0.1], judged=1)
    assert {each.interval for each in decide(policy.compile(), MAXIMIZE, made)} == {2}
    assert decide(policy.compile(), MAXIMIZE, trials([0.9], [0.1], judged=1)) == []


def test_no_termination():
    assert decide(NoTerminationPolicy().compile(), MAXIMIZE, trials([0.9], [0.1])) == []


@pytest.mark.parametrize(
    ("policy", "goal", "words"),
    [
        (
            BanditPolicy(slack_factor=0.1, delay_evaluation=4),
            MAXIMIZE,
            [
                "interval 4: run_0 best 0.9 >= 0.9/(1+0.1) = 0.818182: continues",
                "interval 4: run_1 best 0.81 < 0.9/(1+0.1) = 0.818182: cancelled",
            ],
        ),
        (
            BanditPolicy(slack_amount=0.05, delay_evaluation=4),
            MINIMIZE,
            [
                "interval 4: run_0 best 0.9 > 0.81 + 0.05 = 0.86: cancelled",
                "interval 4: run_1 best 0.81 <= 0.81 + 0.05 = 0.86: continues",
            ],
        ),
        (
            MedianStoppingPolicy(delay_evaluation=4),
            MAXIMIZE,
            [
                "interval 4: run_0 best 0.9 >= 0.855, the median of 2 averages: continues",
                "interval 4: run_1 best 0.81 < 0.855, the median of 2 averages: cancelled",
            ],
        ),
        (
            TruncationSelectionPolicy(50, delay_evaluation=4),
            MAXIMIZE,
            [
                "interval 4: run_0 best 0.9 is number 1 of 2, not among the last 1 (50 %): continues",
                "interval 4: run_1 best 0.81 is number 2 of 2, among the last 1 (50 %): cancelled",
            ],
        ),
        (
            HyperbandPolicy(min_intervals=4, reduction_factor=2),
            MAXIMIZE,
            [
                "interval 4: run_0 best 0.9 is number 1 of 2, among the first 1 (1 of 2): continues",
                "interval 4: run_1 best 0.81 is number 2 of 2, not among the first 1 (1 of 2): cancelled",
            ],
        ),
    ],
)
def test_every_decision_has_its_numbers(policy, goal, words):
    made = trials([0.9] * 4, [0.81] * 4)
    assert [each.words for each in decide(policy.compile(), goal, made)] == words
