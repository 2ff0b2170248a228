"""Why the pods of a run ended, where the cluster knows more than the agents."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from trainmaster.engines.engine import Ending, Nodes
from trainmaster.engines.kubernetes.cluster import Cluster
from trainmaster.engines.kubernetes.endings import ending_of, explain_deletion
from trainmaster.engines.kubernetes.gang_control import Gang
from trainmaster.engines.kubernetes.pod_patch import CONTAINER
from trainmaster.engines.kubernetes.pod_watch import Pod
from trainmaster.engines.remote.channel import Unreachable
from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.json_files import read_json
from trainmaster.shared.records import RunError, Status
from trainmaster.shared.retry import retry

log = logging.getLogger("trainmaster.dispatch")

# For an API server that is being restarted, beyond the patience of a request.
_PATIENCE_SECONDS = 120.0


class Attempt(Protocol):
    """What this needs to know of an attempt."""

    gang: Gang

    def was_started(self, number: int) -> bool:
        """Whether there may have been an agent on this node."""

    def problem_of(self, number: int) -> str:
        """Why the node counts as lost; empty if it does not."""


async def find_ending(cluster: Cluster, attempt: Attempt, nodes: Nodes) -> Ending | None:
    """Why nodes were taken away. The first one in the order of the nodes that says it counts, losses before others."""
    if attempt.gang.is_released or all(_has_succeeded(nodes, number) for number in range(nodes.count)):
        return None
    endings = []
    for number, name in enumerate(attempt.gang.names.pods):
        found = await _ending(cluster, attempt, nodes, number, name)
        if found is not None:
            endings.append(found)
    # A lost pod ends the others, which then fail in other ways.
    return next((each for each in endings if each.again), endings[0] if endings else None)


async def _ending(cluster: Cluster, attempt: Attempt, nodes: Nodes, number: int, name: str) -> Ending | None:
    if not attempt.was_started(number):
        return None
    last = cluster.pods.last_seen(name) or {"metadata": {"name": name}, "spec": {}, "status": {}}
    events = await cluster.list_events(name)
    found = ending_of(last, number, events)
    if found is not None:
        return found
    if cluster.pods.get(name) is None and cluster.pods.answering_for:
        return explain_deletion(last, number, events)
    if not _has_exited(nodes, number):
        found = await _ask_for_ending(cluster, last, number, events)
    problem = attempt.problem_of(number)
    return found or (_without_result(last, number, problem) if problem else None)


async def _ask_for_ending(
    cluster: Cluster, last: Pod, number: int, events: Sequence[Mapping[str, Any]]
) -> Ending | None:
    """The ending of a pod whose agent was stopped, though the watch does not say why.

    The watch may be behind, such as after a restart of the API server, so that is asked itself.
    """
    name = str(last["metadata"]["name"])
    try:
        pod = await retry(lambda: cluster.read_pod(name), Unreachable, seconds=_PATIENCE_SECONDS)
    except ComputeTargetException as error:
        log.warning("Kubernetes: nobody knows why pod %s ended: %s", name, error.headline)
        return None
    return explain_deletion(last, number, events) if pod is None else ending_of(pod, number, events)


def _without_result(pod: Pod, number: int, problem: str) -> Ending:
    """The ending of a pod whose container ended for a reason that the cluster does not know."""
    name, machine = pod["metadata"]["name"], str(pod["spec"].get("nodeName") or "")
    state = _find_terminated(pod)
    if state:
        words = f"its container ended with exit code {state.get('exitCode')} before the agent had written a result"
    else:
        words = f"it runs, but does not answer: {problem}"
    message = f"node {number} of the run was lost (pod {name}{f' on {machine}' if machine else ''}): {words}"
    return Ending(Status.FAILED, RunError("NodeAgentLost", message, {"node": number, "host": machine}))


def _find_terminated(pod: Pod) -> dict[str, Any]:
    for container in (pod.get("status") or {}).get("containerStatuses") or ():
        if container.get("name") == CONTAINER:
            return dict((container.get("state") or {}).get("terminated") or {})
    return {}


def _has_exited(nodes: Nodes, number: int) -> bool:
    return (_read_result(nodes, number) or {}).get("reason") == "exited"


def _has_succeeded(nodes: Nodes, number: int) -> bool:
    result = _read_result(nodes, number)
    return result is not None and result.get("reason") == "exited" and not result.get("first_failure")


def _read_result(nodes: Nodes, number: int) -> dict[str, Any] | None:
    return read_json(nodes.folder.node(number) / "result.json")
