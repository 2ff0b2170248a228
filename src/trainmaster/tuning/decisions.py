"""What the policies decide: pure functions from the trials' reports to decisions, each with its reason.

A trial is judged once per interval, after it has reported it. It is compared with all trials that have reported as many
values by then, including finished and cut ones. The best of them is never cut, and so a trial without peers continues.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from trainmaster.tuning.goal import PrimaryMetricGoal, is_worse
from trainmaster.tuning.spec import PolicySpec
from trainmaster.tuning.trial import Decision, Trial


@dataclass(frozen=True)
class Case:
    """A trial at an interval, and all trials that have reached the interval, including itself."""

    trial: Trial
    interval: int
    peers: Sequence[Trial]
    goal: PrimaryMetricGoal

    @property
    def best(self) -> float:
        """The trial's best value so far."""
        return self.best_of(self.trial)

    def best_of(self, trial: Trial) -> float:
        """A peer's best value at the same interval."""
        return trial.best(self.goal, self.interval)


Verdict = tuple[bool, str]
"""Whether to cut, and why or why not."""


def decide(policy: PolicySpec, goal: PrimaryMetricGoal, trials: Sequence[Trial]) -> list[Decision]:
    """The new decisions about running trials, in the order of their numbers."""
    verdict = _VERDICTS.get(policy.kind)
    if verdict is None:
        return []
    found: list[Decision] = []
    for trial in trials:
        if trial.can_be_cut:
            found += _judge(policy, goal, trials, trial, verdict)
    return found


def due(policy: PolicySpec, number: int, after: int, upto: int) -> Iterator[int]:
    """The intervals at which `policy` judges trial `number`, above `after` and not above `upto`."""
    if policy.kind == "hyperband":
        yield from (rung for rung in _rungs(policy, number, upto) if rung > after)
        return
    step = policy.evaluation_interval
    first = max(after + 1, policy.delay_evaluation, 1)
    yield from range(-(-first // step) * step, upto + 1, step)


def _judge(
    policy: PolicySpec,
    goal: PrimaryMetricGoal,
    trials: Sequence[Trial],
    trial: Trial,
    verdict: Callable[[PolicySpec, Case], Verdict],
) -> Iterator[Decision]:
    for interval in due(policy, trial.number, trial.judged, len(trial.values)):
        peers = [other for other in trials if len(other.values) >= interval]
        cut, why = verdict(policy, Case(trial, interval, peers, goal))
        reason = f"interval {interval}: run_{trial.number} {why}: {'cancelled' if cut else 'continues'}"
        yield Decision(trial.number, interval, cut, reason)
        if cut:
            return


def _bandit(policy: PolicySpec, case: Case) -> Verdict:
    leader = _best(case.goal, [peer.best(case.goal, case.interval) for peer in case.peers])
    limit, formula = _slack(policy, case.goal, leader)
    return _compare(case, limit, f"{formula} = {_short(limit)}")


def _slack(policy: PolicySpec, goal: PrimaryMetricGoal, leader: float) -> tuple[float, str]:
    maximise = goal == PrimaryMetricGoal.MAXIMIZE
    if policy.slack_amount is not None:
        amount = policy.slack_amount
        if maximise:
            return leader - amount, f"{_short(leader)} - {_short(amount)}"
        return leader + amount, f"{_short(leader)} + {_short(amount)}"
    ratio = 1 + (policy.slack_factor or 0.0)
    # Below zero the ratio is inverted; otherwise the leader would be worse than its own limit.
    if maximise == (leader >= 0):
        return leader / ratio, f"{_short(leader)}/(1+{_short(policy.slack_factor or 0.0)})"
    return leader * ratio, f"{_short(leader)}*(1+{_short(policy.slack_factor or 0.0)})"


def _median(policy: PolicySpec, case: Case) -> Verdict:
    averages = [peer.average(case.interval) for peer in case.peers]
    numbers = [average for average in averages if not math.isnan(average)]
    if not numbers:
        return False, "has no number to compare with"
    limit = median(numbers)
    return _compare(case, limit, f"{_short(limit)}, the median of {len(numbers)} averages")


def _truncation(policy: PolicySpec, case: Case) -> Verdict:
    count = len(case.peers)
    cut = count * policy.truncation_percentage // 100
    rank = _rank(case, case.peers)
    what = f"best {_short(case.best)} is number {rank} of {count}"
    worst = f"the last {cut} ({policy.truncation_percentage} %)"
    return (True, f"{what}, among {worst}") if rank > count - cut else (False, f"{what}, not among {worst}")


def _hyperband(policy: PolicySpec, case: Case) -> Verdict:
    bracket = case.trial.number % policy.brackets
    peers = [peer for peer in case.peers if peer.number % policy.brackets == bracket]
    keep = max(1, len(peers) // policy.reduction_factor)
    rank = _rank(case, peers)
    what = f"best {_short(case.best)} is number {rank} of {len(peers)}"
    first = f"the first {keep} (1 of {policy.reduction_factor})"
    if len(peers) < policy.reduction_factor:
        return False, f"{what}, and fewer than {policy.reduction_factor} have reached it"
    return (True, f"{what}, not among {first}") if rank > keep else (False, f"{what}, among {first}")


_VERDICTS: dict[str, Callable[[PolicySpec, Case], Verdict]] = {
    "bandit": _bandit,
    "median": _median,
    "truncation": _truncation,
    "hyperband": _hyperband,
}


def _rungs(policy: PolicySpec, number: int, upto: int) -> Iterator[int]:
    rung = policy.min_intervals * policy.reduction_factor ** (number % policy.brackets)
    while rung <= upto:
        yield rung
        rung *= policy.reduction_factor


def _compare(case: Case, limit: float, limit_text: str) -> Verdict:
    maximise = case.goal == PrimaryMetricGoal.MAXIMIZE
    cut = is_worse(case.goal, case.best, limit)
    sign = ("<" if maximise else ">") if cut else (">=" if maximise else "<=")
    return cut, f"best {_short(case.best)} {sign} {limit_text}"


def _rank(case: Case, peers: Sequence[Trial]) -> int:
    """1 for the best trial; of equal ones the first comes first."""
    own = case.best
    before = sum(
        is_worse(case.goal, own, case.best_of(peer)) or (case.best_of(peer) == own and peer.number < case.trial.number)
        for peer in peers
    )
    return before + 1


def _best(goal: PrimaryMetricGoal, values: Sequence[float]) -> float:
    return max(values) if goal == PrimaryMetricGoal.MAXIMIZE else min(values)


def _short(number: float) -> str:
    """At most six digits."""
    return "no number" if math.isinf(number) else f"{number:.6g}"
