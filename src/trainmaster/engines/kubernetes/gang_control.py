"""The pods of one run: created all at once, waited for, given back, and deleted."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from trainmaster.engines.engine import FewerNodesError
from trainmaster.engines.kubernetes.api_errors import ApiError
from trainmaster.engines.kubernetes.cluster import Cluster
from trainmaster.engines.kubernetes.endings import ending_of
from trainmaster.engines.kubernetes.gang import (
    Decision,
    Elasticity,
    PodState,
    Step,
    count_settled,
    decide,
    decide_elastic,
    has_ended,
    state_of,
)
from trainmaster.engines.kubernetes.pod_watch import Pod
from trainmaster.engines.kubernetes.pods import GangNames, labels_of, make_service, owner_of
from trainmaster.engines.kubernetes.reasons import demand_words, quota_words, waiting_words
from trainmaster.engines.remote.channel import Unreachable
from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.job_spec import JobSpec
from trainmaster.shared.retry import Backoff

log = logging.getLogger("trainmaster.dispatch")

# Decide again after this time even if no pod changes: images that cannot be pulled are given up by the clock.
_LOOK_SECONDS = 5.0
# The same for pods that wait for the scheduler: nothing that is decided by the clock concerns them.
_IDLE_SECONDS = 60.0
_REFUSED_SECONDS = 10.0
_MOST_EVENTS = 3
# Before pods that were given back are created again.
_FIRST_PAUSE, _LONGEST_PAUSE = 30.0, 600.0
# For kubelets to end the containers of pods that were deleted.
_END_SECONDS = 60.0

PodMaker = Callable[[int, Mapping[str, Any]], Mapping[str, Any]]
"""Returns the description of a pod from its number and its owner."""


class Gang:
    """The pods of one run."""

    def __init__(
        self,
        cluster: Cluster,
        names: GangNames,
        make_pod: PodMaker,
        gang_seconds: float,
        before_create: Callable[[], None] = lambda: None,
        has_begun: Callable[[], bool] = lambda: False,
        elasticity: Elasticity | None = None,
    ) -> None:
        """`before_create` is called before pods are created while there is none. `has_begun` says whether the run has
        begun in its pods without us, so that some may have ended again. `elasticity` is that of an elastic run.
        """
        self.names = names
        self.words = ""
        """What the pods wait for, as a sentence."""
        self.is_released = False
        """Whether we delete the pods, so that their end says nothing about the run."""
        self._cluster = cluster
        self._make_pod = make_pod
        self._before_create = before_create
        self._has_begun = has_begun
        self._gang_seconds = gang_seconds
        self._elasticity = elasticity
        self._owner: Mapping[str, Any] | None = None
        self._pauses = Backoff(min(_FIRST_PAUSE, gang_seconds), _LONGEST_PAUSE)

    @property
    def pods(self) -> list[Pod | None]:
        """The pods as they are now, in the order of the nodes."""
        return [self._cluster.pods.get(name) for name in self.names.pods]

    @property
    def states(self) -> list[PodState]:
        return [state_of(pod) for pod in self.pods]

    @property
    def is_running(self) -> bool:
        """Whether all pods run."""
        return set(self.states) == {PodState.RUNNING}

    async def assemble(self) -> list[Pod]:
        """Returns the pods once all of them run or have run. Raises the reason if they can never run, and
        FewerNodesError if an elastic run is to start with fewer.
        """
        await self._cluster.pods.wait_until_known()
        half_since: float | None = None
        with self._cluster.pods.changes_of(self.names.pods) as changed:
            while not self._has_begun():
                changed.clear()
                decision = self._decide(half_since)
                half_since = decision.half_since
                if decision.step is Step.STARTED:
                    break
                events = await self._read_events()
                if self._is_stuck(events):
                    decision = Decision(Step.RELEASE)
                self.words = waiting_words([pod for pod in self.pods if pod is not None], events) or self.words
                await self._do(decision, changed)
        self.words = ""
        return [pod for pod in self.pods if pod is not None]

    def _decide(self, half_since: float | None) -> Decision:
        now = time.monotonic()
        decision = decide(self.states, now, half_since, self._gang_seconds)
        return decision if self._elasticity is None else decide_elastic(decision, self.pods, self._elasticity, now)

    async def _do(self, decision: Decision, changed: asyncio.Event) -> None:
        pause = _LOOK_SECONDS if PodState.PLACED in self.states else _IDLE_SECONDS
        try:
            if decision.step is Step.CREATE:
                await _finish(self._create())
                # A pod may exist although the watch has not reported it yet.
                await self._wait_for(lambda: PodState.MISSING not in self.states, _LOOK_SECONDS)
                return
            if decision.step is Step.RELEASE:
                await self._give_back()
                return
            if decision.step is Step.FEWER:
                await self._give_up_some()
                return
        except Unreachable as error:
            self.words = f"waiting for Kubernetes: {error.headline}"
            pause = _LOOK_SECONDS
        except ApiError as error:
            self._explain_refusal(error)
            pause = _REFUSED_SECONDS
        if decision.look_at is not None:
            pause = min(max(decision.look_at - time.monotonic(), 0.05), pause)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await changed.wait()

    async def _create(self) -> None:
        """Creates the service and the pods that are missing."""
        labels = labels_of(self._cluster.workspace, self.names)
        # Again each time: somebody may have deleted it, and pods of an owner that is gone are collected.
        self._owner = owner_of(await self._cluster.create_service(make_service(self.names, labels)))
        missing = [number for number, state in enumerate(self.states) if state is PodState.MISSING]
        if len(missing) == len(self.names.pods):
            self._before_create()
        owner = self._owner
        await asyncio.gather(*(self._cluster.create_pod(self._make_pod(number, owner)) for number in missing))

    async def _give_back(self) -> None:
        """Deletes all pods, so that other runs can use what these kept, and waits before the next attempt."""
        found = set(self.states)
        is_half = bool(found & {PodState.WAITING, PodState.MISSING}) and not found & {PodState.ENDED, PodState.LEAVING}
        count = sum(state in (PodState.PLACED, PodState.RUNNING) for state in self.states)
        log.info("run %s: giving back its pods: %s", self.names.run_id, [state.value for state in self.states])
        await self._cluster.delete_pods(self.names.pods)
        if is_half:
            self.words = (
                f"only {count} of {len(self.names.pods)} pods got a machine within {self._gang_seconds:g} s; "
                "they were given back, and all are tried again in a while"
            )
            await asyncio.sleep(self._pauses.next_pause() * random.uniform(0.5, 1.5))
        else:
            self.words = "a pod was lost before the run could start; the pods are created again"

    async def _give_up_some(self) -> None:
        """Deletes all pods, and raises FewerNodesError with the number of those that had a machine."""
        count = count_settled(self.pods)
        log.info("run %s: starting with %d of %d pods", self.names.run_id, count, len(self.names.pods))
        await self._cluster.delete_pods(self.names.pods)
        while not await self._wait_for(lambda: set(self.states) == {PodState.MISSING}, _END_SECONDS):
            log.warning("run %s: its pods take long to end", self.names.run_id)
        # Pods that met meanwhile have begun without us: their loss is that of a run.
        if not self._has_begun():
            raise FewerNodesError(count)

    def _explain_refusal(self, error: ApiError) -> None:
        """Sets what the run waits for; raises the error if waiting does not help."""
        text = f"{error.headline} {error.cause}"
        words = quota_words(text)
        if words:
            self.words = words
            return
        if demand_words(text):
            raise ComputeTargetException("Kubernetes refuses the pods of the run", cause=demand_words(text))
        if error.status < 500 and error.status != 429:
            raise error
        self.words = f"waiting for Kubernetes: {error.headline}"

    async def _read_events(self) -> list[Mapping[str, Any]]:
        """The events of pods that have a machine and do not run: only they say what is pulled or mounted."""
        placed = [name for name, state in zip(self.names.pods, self.states, strict=True) if state is PodState.PLACED]
        found = await asyncio.gather(*(self._cluster.list_events(name) for name in placed[:_MOST_EVENTS]))
        return [event for events in found for event in events]

    def _is_stuck(self, events: Sequence[Mapping[str, Any]]) -> bool:
        """Whether a pod has to be replaced by another one. Raises an error for pods that would never run."""
        is_stuck = False
        for number, pod in enumerate(self.pods):
            if pod is None:
                continue
            name = pod["metadata"]["name"]
            own = [event for event in events if (event.get("involvedObject") or {}).get("name") == name]
            ending = ending_of(pod, number, own, time.time())
            if ending is None or ending.error is None:
                continue
            if not ending.again:
                headline, _, cause = ending.error.message.partition("\n")
                raise ComputeTargetException(headline, cause=cause)
            is_stuck = is_stuck or state_of(pod) is PodState.PLACED
        return is_stuck

    async def release(self, lost: frozenset[str] = frozenset()) -> None:
        """Deletes everything and returns when no container runs any more, except those of `lost` pods.

        Raises ComputeTargetException.
        """
        self.is_released = True
        self._cluster.check_answers()
        await self._cluster.delete_gang(self.names)
        names = [name for name in self.names.pods if name not in lost]
        if not await self._wait_for(lambda: all(map(self.is_over, names)), _END_SECONDS):
            log.warning("run %s: its pods take long to end", self.names.run_id)

    async def wait_for_change(self, seconds: float) -> None:
        """Returns after the next change of a pod of the run, or after `seconds`."""
        await self._cluster.pods.wait_for_change(self.names.pods, seconds)

    async def _wait_for(self, condition: Callable[[], bool], seconds: float) -> bool:
        return await self._cluster.pods.wait_for(self.names.pods, condition, seconds)

    def is_over(self, name: str) -> bool:
        """Whether a pod is gone, or its containers have ended."""
        pod = self._cluster.pods.get(name)
        return pod is None or has_ended(pod)

    def forget(self) -> None:
        """Forgets the pods, which are gone."""
        for name in self.names.pods:
            self._cluster.pods.forget(name)


def elasticity_of(spec: JobSpec) -> Elasticity | None:
    """With how few pods a run may start, and when; None if it needs all. The time begins now."""
    fewest = spec.distribution.min_nodes
    return None if fewest is None else Elasticity(fewest, time.monotonic() + spec.distribution.wait_seconds)


async def _finish(work: Coroutine[Any, Any, None]) -> None:
    """Does `work` even if it is cancelled: what is deleted next must not be created afterwards."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.gather(task, return_exceptions=True)
        raise
