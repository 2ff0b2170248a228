"""What to do next for a gang of pods, from the states of its pods and the clock. Pure.

All pods of a run start, or none keeps resources while others cannot get a machine: after a time limit the pods of half
a gang are deleted, and created again later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from trainmaster.engines.kubernetes.reasons import condition_of


class PodState(Enum):
    """What matters of a pod for its gang."""

    MISSING = "missing"
    WAITING = "waiting"
    """It has no machine yet."""
    PLACED = "placed"
    """It has a machine, on which it does not run yet."""
    RUNNING = "running"
    ENDED = "ended"
    LEAVING = "leaving"
    """It is being deleted."""


class Step(Enum):
    """What to do next."""

    CREATE = "create"
    """Create the pods that are missing."""
    WAIT = "wait"
    RELEASE = "release"
    """Delete all pods: half a gang waits too long, or a pod was lost. Create them again later."""
    FEWER = "fewer"
    """Start an elastic run with as many pods as have a machine."""
    STARTED = "started"


@dataclass(frozen=True)
class Decision:
    """The next step."""

    step: Step
    half_since: float | None = None
    """Since when only some of the pods have a machine. To be given to the next decision."""
    look_at: float | None = None
    """When to decide again even if no pod changes."""


@dataclass(frozen=True)
class Elasticity:
    """With how many pods an elastic run starts once it has waited for all of them."""

    fewest: int
    at: float
    """By the same clock as decisions."""


_SETTLED = frozenset({PodState.PLACED, PodState.RUNNING})


def state_of(pod: Mapping[str, Any] | None) -> PodState:
    """The state of a pod; None if there is none."""
    if pod is None:
        return PodState.MISSING
    status = pod.get("status") or {}
    if (pod.get("metadata") or {}).get("deletionTimestamp"):
        return PodState.LEAVING
    if has_ended(pod):
        return PodState.ENDED
    if status.get("phase") == "Running" and status.get("podIP"):
        return PodState.RUNNING
    return PodState.PLACED if (pod.get("spec") or {}).get("nodeName") else PodState.WAITING


def has_ended(pod: Mapping[str, Any]) -> bool:
    """Whether the containers of a pod have ended, or none will ever run."""
    status = pod.get("status") or {}
    if status.get("phase") in ("Succeeded", "Failed"):
        return True
    states = [each.get("state") or {} for each in status.get("containerStatuses") or ()]
    return bool(states) and all("terminated" in state for state in states)


def decide(states: Sequence[PodState], now: float, half_since: float | None, gang_seconds: float) -> Decision:
    """What to do next for a gang whose pods have these states.

    >>> decide([PodState.RUNNING, PodState.RUNNING], 7.0, None, 300.0).step
    <Step.STARTED: 'started'>
    >>> decide([PodState.RUNNING, PodState.WAITING], 307.0, 7.0, 300.0).step
    <Step.RELEASE: 'release'>
    """
    found = set(states)
    if found & {PodState.ENDED, PodState.LEAVING}:
        # Names are used again, so nothing is created before all pods are gone.
        remaining = found - {PodState.MISSING, PodState.LEAVING}
        return Decision(Step.RELEASE if remaining else Step.WAIT)
    if found == {PodState.RUNNING}:
        return Decision(Step.STARTED)
    step = Step.CREATE if PodState.MISSING in found else Step.WAIT
    if not found & _SETTLED or found <= _SETTLED:
        # None of them keeps a machine, or all have one.
        return Decision(step)
    since = now if half_since is None else half_since
    if now - since >= gang_seconds:
        return Decision(Step.RELEASE)
    return Decision(step, since, since + gang_seconds)


def decide_elastic(
    decision: Decision, pods: Sequence[Mapping[str, Any] | None], elasticity: Elasticity, now: float
) -> Decision:
    """What to do for a run that may start with fewer pods, instead of `decision`.

    Pods count as not available only after the scheduler has found no machine for them.
    """
    waiting = [pod for pod in pods if state_of(pod) not in _SETTLED]
    if not waiting or not all(map(_is_refused, waiting)) or count_settled(pods) < elasticity.fewest:
        return decision
    if now >= elasticity.at:
        return Decision(Step.FEWER, decision.half_since)
    times = [each for each in (elasticity.at, decision.look_at) if each is not None]
    return replace(decision, look_at=min(times))


def count_settled(pods: Sequence[Mapping[str, Any] | None]) -> int:
    """How many pods have a machine."""
    return sum(state_of(pod) in _SETTLED for pod in pods)


def _is_refused(pod: Mapping[str, Any] | None) -> bool:
    """Whether the scheduler has looked at a pod and found no machine for it."""
    if state_of(pod) is not PodState.WAITING or pod is None:
        return False
    condition = condition_of(pod, "PodScheduled")
    return condition.get("status") == "False" and condition.get("reason") == "Unschedulable"
