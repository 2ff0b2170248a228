"""Decisions of a policy are read back from the log of a sweep."""

from __future__ import annotations

import time

from trainmaster.dispatcher.sweeps.decision_log import read_decisions
from trainmaster.dispatcher.sweeps.log import SweepLog
from trainmaster.shared.records import Status
from trainmaster.tuning.decisions import decide
from trainmaster.tuning.goal import PrimaryMetricGoal
from trainmaster.tuning.policies import (
    BanditPolicy,
    HyperbandPolicy,
    MedianStoppingPolicy,
    TruncationSelectionPolicy,
)
from trainmaster.tuning.trial import Trial

POLICIES = (
    BanditPolicy(slack_factor=0.1),
    BanditPolicy(slack_amount=0.2),
    MedianStoppingPolicy(),
    TruncationSelectionPolicy(50),
    HyperbandPolicy(),
)


def test_every_decision_of_every_policy(tmp_path):
    trials = [Trial(number, {}, Status.RUNNING, (float(number), float("nan"))) for number in range(8)]
    log = SweepLog(tmp_path / "hyperdrive.txt")
    log.say("run_1 was started with --lr 0.1")
    decided = [each for policy in POLICIES for each in decide(policy.compile(), PrimaryMetricGoal.MAXIMIZE, trials)]
    for decision in decided:
        log.say(decision.words)
    log.say("interval x: nothing")
    log.close()
    found = read_decisions((tmp_path / "hyperdrive.txt").read_text(), {3: "sweep_3"})
    assert len(decided) > 30 and {each.cut for each in decided} == {True, False}
    assert [(each.number, each.interval, each.is_cut, each.reason) for each in found] == [
        (each.number, each.interval, each.cut, each.words) for each in decided
    ]
    assert {each.run_id for each in found if each.number == 3} == {"sweep_3"}
    assert abs(found[0].decided_at - time.time()) < 3600


def test_what_is_no_decision_is_ignored():
    texts = ["", "\0", "2026-13-99 00:00:00 interval 1: run_1 x: cancelled", "interval 1: run_1 x: cancelled"]
    assert [each.decided_at for each in read_decisions("\n".join(texts), {})] == [None]
