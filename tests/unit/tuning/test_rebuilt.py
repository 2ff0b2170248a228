"""A config can be rebuilt from the description of a sweep."""

from __future__ import annotations

import pytest

from trainmaster.sdk.sweeps.rebuilt import policy_of
from trainmaster.tuning.policies import (
    POLICIES,
    BanditPolicy,
    EarlyTerminationPolicy,
    HyperbandPolicy,
    MedianStoppingPolicy,
    NoTerminationPolicy,
    TruncationSelectionPolicy,
)


@pytest.mark.parametrize(
    "policy",
    [
        NoTerminationPolicy(),
        BanditPolicy(2, slack_factor=0.1, delay_evaluation=3),
        BanditPolicy(slack_amount=0.5),
        MedianStoppingPolicy(2, 5),
        TruncationSelectionPolicy(20, 3, 6),
        HyperbandPolicy(2, 4, 3),
    ],
)
def test_every_policy(policy: EarlyTerminationPolicy) -> None:
    again = policy_of(policy.compile())
    assert type(again) is type(policy) is POLICIES[policy.compile().kind]
    assert again == policy
