"""Why the pods of a run ended, where the cluster knows more than the agents."""

from __future__ import annotations

from typing import Any, Protocol

from trainmaster.engines.engine import Ending, Nodes
from trainmaster.engines.kubernetes.cluster import Cluster
from trainmaster.engines.kubernetes.endings import ending_of, explain_deletion
from trainmaster.engines.kubernetes.gang_control import Gang
from trainmaster.engines.kubernetes.pod_patch import CONTAINER
from trainmaster.engines.kubernetes.pod_watch import Pod
from trainmaster.shared.json_files import read_json
from trainmaster.shared.records import RunError, Status


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
    pod = cluster.pods.get(name)
    last = cluster.pods.last_seen(name) or {"metadata": {"name": name}, "spec": {}, "status": {}}
    if not attempt.was_started(number):
        return None
    events = await cluster.list_events(name)
    found = ending_of(last, number, events)
    if found is not None:
        return found
    if pod is None and cluster.pods.answering_for:
        return explain_deletion(last, number, events)
    problem = attempt.problem_of(number)
    return _without_result(last, number, problem) if problem else None


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


def _has_succeeded(nodes: Nodes, number: int) -> bool:
    result = read_json(nodes.folder.node(number) / "result.json")
    return result is not None and result.get("reason") == "exited" and not result.get("first_failure")
