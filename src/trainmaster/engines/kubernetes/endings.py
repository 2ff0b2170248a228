"""How a pod ended, if that says more than its agent could. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from trainmaster.engines.engine import Ending
from trainmaster.engines.kubernetes.pod_patch import CONTAINER
from trainmaster.engines.kubernetes.reasons import (
    CREATE_ERRORS,
    PULL_ERRORS,
    condition_of,
    pull_words,
    waiting_state,
)
from trainmaster.shared.records import RunError, Status

PULL_SECONDS, CREATE_SECONDS, REFUSED_SECONDS = 600.0, 300.0, 60.0
"""How long an image may fail to be pulled and a container to be created, and how long if there is little hope."""
INTERRUPTED_SECONDS = 60.0
"""How long a machine may try to create a container after it was interrupted."""
_INTERRUPTION = "was lost: its machine was interrupted while it started the container"
# A registry that says this will say it again. Credentials may still be on their way, so not at once.
_HOPELESS = re.compile(
    r"not found|manifest unknown|does not exist|denied|unauthorized|authentication required|no match for platform"
    r"|invalid reference|insufficient_scope",
    re.IGNORECASE,
)
_NO_PROGRAM = re.compile(
    r'exec: \\?"(?P<program>[^"\\]+)\\?": (?:stat \S+: )?(?:executable file not found|no such file)'
)
_WRONG_MACHINE = "exec format error"
# What remains of a start in whose middle the kubelet or the container runtime of a machine was restarted.
_INTERRUPTED = re.compile(
    r"context canceled|context cancelled|context deadline exceeded|DeadlineExceeded|code = Unavailable|ttrpc: closed"
    r"|transport is closing|connection refused|connection reset|error reading from server|is reserved for"
    r"|container with given id already exists|already in use|signal: killed|closed fifo|shim (?:dead|disconnected)",
    re.IGNORECASE,
)
# The pod itself used too much.
_OWN_FAULT = re.compile(r"was using|exceeds the limit|exceeds the total limit|exceeded its local ephemeral storage")
_GONE = {
    "NodeLost": ("NodeLost", "its machine no longer answers"),
    "Shutdown": ("NodeShutdown", "its machine was shut down"),
    "NodeShutdown": ("NodeShutdown", "its machine was shut down"),
    "Terminated": ("NodeShutdown", "its machine was shut down"),
    "Preempting": ("Preempted", "its machine needed the room for a more important pod"),
    "UnexpectedAdmissionError": ("PodRefused", "its machine did not admit it"),
    "NodeAffinity": ("PodRefused", "its machine did not admit it"),
    "TopologyAffinityError": ("PodRefused", "its machine did not admit it"),
}
# Reasons of the condition DisruptionTarget, which pods have since Kubernetes 1.25.
_DISRUPTIONS = {
    "PreemptionByScheduler": ("Preempted", "the scheduler gave its place to a pod of higher priority"),
    "PreemptionByKubeScheduler": ("Preempted", "the scheduler gave its place to a pod of higher priority"),
    "DeletionByTaintManager": ("NodeLost", "its machine got a taint that the run does not tolerate"),
    "EvictionByEvictionAPI": ("Evicted", "it was evicted, as when a machine is drained"),
    "DeletionByPodGC": ("NodeLost", "its machine no longer exists"),
    "TerminationByKubelet": ("Evicted", "its machine ended it"),
}


def ending_of(
    pod: Mapping[str, Any],
    number: int,
    events: Sequence[Mapping[str, Any]] = (),
    now: float | None = None,
) -> Ending | None:
    """How the pod of node `number` ended; None if it has not, or if its agent knows better.

    With the time `now`, also for a pod that cannot start: its image cannot be pulled, or its container not be created.
    `events` are those of the pod.
    """
    status = pod.get("status") or {}
    if status.get("phase") == "Pending" and not is_deleted(pod):
        return _explain_wait(pod, number, events, now)
    preempted = next((event for event in events if event.get("reason") == "Preempted"), None)
    if preempted is not None:
        return _try_again("Preempted", pod, number, f"was preempted: {preempted.get('message')}")
    disruption = condition_of(pod, "DisruptionTarget")
    reason = str(status.get("reason") or "")
    if reason == "Evicted":
        return _explain_eviction(pod, number)
    if reason == "DeadlineExceeded":
        return _explain_deadline(pod, number)
    if disruption.get("status") == "True":
        code, words = _DISRUPTIONS.get(str(disruption.get("reason")), ("PodLost", "it was taken away"))
        return _try_again(code, pod, number, f"was lost: {words}", str(disruption.get("message") or ""))
    if reason in _GONE or reason.startswith("OutOf"):
        code, words = _GONE.get(reason, ("PodRefused", "its machine had no room for it"))
        return _try_again(code, pod, number, f"was lost: {words}", str(status.get("message") or ""))
    if is_deleted(pod):
        return explain_deletion(pod, number)
    return _find_end(pod, number)


def is_deleted(pod: Mapping[str, Any]) -> bool:
    """Whether a pod is being deleted."""
    return bool((pod.get("metadata") or {}).get("deletionTimestamp"))


def explain_deletion(pod: Mapping[str, Any], number: int, events: Sequence[Mapping[str, Any]] = ()) -> Ending:
    """The ending of a pod that is gone, or is being deleted, and that we did not delete. It runs again, as a pod of a
    Job would; `pod` is how it was last seen."""
    if any(event.get("reason") == "TaintManagerEviction" for event in events):
        return _try_again("NodeLost", pod, number, "was lost: its machine got a taint that the run does not tolerate")
    return _try_again("PodDeleted", pod, number, "was deleted in the cluster, not by Trainmaster")


def _find_end(pod: Mapping[str, Any], number: int) -> Ending | None:
    state = _end_of_container(pod)
    reason, message = str(state.get("reason") or ""), str(state.get("message") or "")
    if reason == "OOMKilled":
        limit = _memory_limit(pod)
        words = f"than its limit of {limit}" if limit else "than its machine had"
        return _fail("OutOfMemory", pod, number, f"used more memory {words} (OOMKilled)")
    missing = _NO_PROGRAM.search(message)
    if missing is not None:
        program = missing["program"]
        words = f"could not start: its image {_image(pod)} has no program '{program}'"
        return _fail("StartError", pod, number, words, "Name an image with Python 3.6 or newer, or its Python.")
    if _WRONG_MACHINE in message:
        words = f"could not start: its image {_image(pod)} is for another kind of processor"
        return _fail("StartError", pod, number, words, message)
    if reason in ("StartError", "ContainerCannotRun"):
        if _INTERRUPTED.search(message):
            return _try_again("StartInterrupted", pod, number, _INTERRUPTION, message)
        return _fail("StartError", pod, number, "could not start", message)
    if reason == "ContainerStatusUnknown":
        return _try_again("NodeLost", pod, number, "was lost: its machine forgot its container", message)
    return None


def _explain_wait(
    pod: Mapping[str, Any], number: int, events: Sequence[Mapping[str, Any]], now: float | None
) -> Ending | None:
    state = waiting_state(pod)
    reason, message = str(state.get("reason") or ""), str(state.get("message") or "")
    if reason == "InvalidImageName":
        return _fail("ImageError", pod, number, f"has no image: {pull_words(pod, events)}")
    since = _find_start(pod)
    waited = 0.0 if now is None or since is None else now - since
    if reason in PULL_ERRORS:
        words = pull_words(pod, events)
        if waited >= (REFUSED_SECONDS if _HOPELESS.search(words) else PULL_SECONDS):
            return _fail("ImageError", pod, number, f"has no image: {words}")
    if reason in CREATE_ERRORS:
        missing = _NO_PROGRAM.search(message)
        if missing is None and _INTERRUPTED.search(message):
            # Its machine tries again, but some of these stay until there is another pod.
            is_stuck = waited >= INTERRUPTED_SECONDS
            return _try_again("StartInterrupted", pod, number, _INTERRUPTION, message) if is_stuck else None
        if missing is not None or waited >= CREATE_SECONDS:
            return _fail("StartError", pod, number, "could not start: its container cannot be created", message)
    return None


def _explain_eviction(pod: Mapping[str, Any], number: int) -> Ending:
    message = str((pod.get("status") or {}).get("message") or "").strip()
    words = f"was evicted from its machine: {message}" if message else "was evicted from its machine"
    if _OWN_FAULT.search(message):
        # It would be evicted again and again.
        hint = "Let the pods of the target request as much memory as its runs use." if "memory" in message else ""
        return _fail("Evicted", pod, number, words, hint)
    return _try_again("Evicted", pod, number, words)


def _explain_deadline(pod: Mapping[str, Any], number: int) -> Ending:
    seconds = (pod.get("spec") or {}).get("activeDeadlineSeconds")
    limit = f" of {seconds} s" if seconds else ""
    message = f"the run was cancelled: {_where(pod, number)} exceeded the time limit{limit} of its pod"
    return Ending(Status.CANCELED, RunError("KubernetesTimeLimit", message, {"node": number}))


def _try_again(code: str, pod: Mapping[str, Any], number: int, words: str, details: str = "") -> Ending:
    ending = _fail(code, pod, number, words, details)
    return Ending(ending.status, ending.error, again=True)


def _fail(code: str, pod: Mapping[str, Any], number: int, words: str, details: str = "") -> Ending:
    message = f"{_where(pod, number)} {words}" + (f"\n{details.strip()}" if details.strip() else "")
    return Ending(Status.FAILED, RunError(code, message, {"node": number, "host": _machine(pod)}))


def _where(pod: Mapping[str, Any], number: int) -> str:
    name = (pod.get("metadata") or {}).get("name")
    machine = _machine(pod)
    return f"node {number} of the run (pod {name}{f' on {machine}' if machine else ''})"


def _machine(pod: Mapping[str, Any]) -> str:
    return str((pod.get("spec") or {}).get("nodeName") or "")


def _end_of_container(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    """How the container ended; if an init container failed, how that one did."""
    status = pod.get("status") or {}
    found: Mapping[str, Any] = {}
    for container in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        state = (container.get("state") or {}).get("terminated") or {}
        if container.get("name") == CONTAINER or state.get("exitCode"):
            found = found if found.get("exitCode") else state
    return found


def _spec_of_container(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    containers: list[Mapping[str, Any]] = (pod.get("spec") or {}).get("containers") or []
    return next((each for each in containers if each.get("name") == CONTAINER), {})


def _memory_limit(pod: Mapping[str, Any]) -> str:
    resources = _spec_of_container(pod).get("resources") or {}
    return str((resources.get("limits") or {}).get("memory") or "")


def _image(pod: Mapping[str, Any]) -> str:
    return str(_spec_of_container(pod).get("image") or "")


def _find_start(pod: Mapping[str, Any]) -> float | None:
    """When the pod got its machine."""
    condition = condition_of(pod, "PodScheduled")
    if condition.get("status") != "True":
        return None
    try:
        return datetime.fromisoformat(str(condition.get("lastTransitionTime")).replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None
