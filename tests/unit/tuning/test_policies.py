"""The policy classes: v1's parameters and checks."""

import numpy
import pytest

from trainmaster.job.errors import HyperDriveConfigException
from trainmaster.tuning.policies import (
    BanditPolicy,
    EarlyTerminationPolicy,
    HyperbandPolicy,
    MedianStoppingPolicy,
    NoTerminationPolicy,
    TruncationSelectionPolicy,
)
from trainmaster.tuning.spec import PolicySpec


@pytest.mark.parametrize(
    ("policy", "spec"),
    [
        (NoTerminationPolicy(), PolicySpec()),
        (BanditPolicy(slack_factor=0.1), PolicySpec("bandit", slack_factor=0.1)),
        (BanditPolicy(2, 0.1, delay_evaluation=5), PolicySpec("bandit", 2, 5, slack_factor=0.1)),
        (BanditPolicy(1, None, 3), PolicySpec("bandit", slack_amount=3.0)),
        (MedianStoppingPolicy(), PolicySpec("median")),
        (MedianStoppingPolicy(2, 3), PolicySpec("median", 2, 3)),
        (TruncationSelectionPolicy(20), PolicySpec("truncation", truncation_percentage=20)),
        (TruncationSelectionPolicy(numpy.int64(20), 2, 3), PolicySpec("truncation", 2, 3, truncation_percentage=20)),
        (HyperbandPolicy(2, 4, 3), PolicySpec("hyperband", min_intervals=2, reduction_factor=4, brackets=3)),
    ],
)
def test_compiled(policy, spec):
    assert policy.compile() == spec
    assert isinstance(policy, EarlyTerminationPolicy)
    assert (policy.evaluation_interval, policy.delay_evaluation) == (spec.evaluation_interval, spec.delay_evaluation)


def test_properties():
    assert BanditPolicy(slack_factor=0.1).slack_factor == 0.1
    assert BanditPolicy(slack_amount=0.1).slack_amount == 0.1
    assert TruncationSelectionPolicy(30).truncation_percentage == 30


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BanditPolicy(), "either slack_factor or slack_amount"),
        (lambda: BanditPolicy(slack_factor=0.1, slack_amount=0.1), "either slack_factor or slack_amount"),
        (lambda: BanditPolicy(slack_factor=-0.1), "slack_factor must be 0 or more"),
        (lambda: BanditPolicy(slack_amount="x"), "slack_amount must be a number"),
        (lambda: BanditPolicy(slack_factor=float("nan")), "slack_factor must be 0 or more"),
        (lambda: BanditPolicy(1.5, slack_factor=0.1), "evaluation_interval must be a whole number"),
        (lambda: BanditPolicy(0, slack_factor=0.1), "evaluation_interval must be at least 1"),
        (lambda: BanditPolicy(slack_factor=0.1, delay_evaluation=-1), "delay_evaluation must be at least 0"),
        (lambda: MedianStoppingPolicy("1"), "evaluation_interval must be a whole number"),
        (lambda: MedianStoppingPolicy(delay_evaluation=None), "delay_evaluation must be a whole number"),
        (lambda: TruncationSelectionPolicy(0), "truncation_percentage must be from 1 to 99"),
        (lambda: TruncationSelectionPolicy(100), "truncation_percentage must be from 1 to 99"),
        (lambda: TruncationSelectionPolicy(12.5), "truncation_percentage must be a whole number"),
        (lambda: TruncationSelectionPolicy(True), "truncation_percentage must be a whole number"),
        (lambda: HyperbandPolicy(reduction_factor=1), "reduction_factor must be at least 2"),
        (lambda: HyperbandPolicy(min_intervals=0), "min_intervals must be at least 1"),
        (lambda: HyperbandPolicy(brackets=0), "brackets must be at least 1"),
    ],
)
def test_refused(make, message):
    with pytest.raises(HyperDriveConfigException, match=message):
        make()
