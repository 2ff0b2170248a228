"""Why the pods of a run have not started, in words for a person. Pure. (How pods ended: endings.py.)"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trainmaster.engines.kubernetes.unschedulable import explain_unschedulable

PULL_ERRORS = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "RegistryUnavailable", "ImageInspectError"}
    | {"SignatureValidationFailed"}
)
CREATE_ERRORS = frozenset({"CreateContainerConfigError", "CreateContainerError", "RunContainerError"})

_KUEUE = "kueue.x-k8s.io/"
# What stands before a registry's own words, in the order in which it does.
_BEFORE_WORDS = re.compile(
    r'^(?:Back-off pulling image "[^"]*":? ?|ErrImagePull: |Failed to pull image "[^"]*": '
    r"|rpc error: code = \w+ desc = "
    r'|Error response from daemon: |failed to pull and unpack image "[^"]*": |failed to resolve reference "[^"]*": )+'
)
_QUOTA = re.compile(
    r"exceeded quota: (?P<name>[^,\s]+), requested: (?P<asked>.+), used: (?P<used>.+), limited: (?P<limit>.+)"
)
_UNDER_QUOTA = re.compile(r"failed quota: (?P<name>[^:\s]+): must specify (?P<what>.+)")
# Events by which a pod that is being created says what it waits for; later ones replace earlier ones.
_TELLING = frozenset(
    {"Pulling", "Pulled", "FailedMount", "FailedAttachVolume", "FailedMapVolume", "FailedCreatePodSandBox"}
    | {"NetworkNotReady", "FailedPreStartHook", "Failed"}
)


def waiting_words(pods: Sequence[Mapping[str, Any]], events: Iterable[Mapping[str, Any]] = ()) -> str:
    """What a run waits for that has these pods; empty if all of them run or have ended.

    `events` are those of its pods, in any order. What Kubernetes says and this does not know is passed on as it is.
    """
    by_pod = _group(events)
    said = [words for pod in pods if (words := pod_words(pod, by_pod.get(_name(pod), [])))]
    if not said:
        return ""
    common, count = Counter(said).most_common(1)[0]
    # Sixteen pods seldom wait for more than one thing.
    return common if count == len(pods) else f"{common} ({count} of {len(pods)} pods)"


def pod_words(pod: Mapping[str, Any], events: Sequence[Mapping[str, Any]] = ()) -> str:
    """What one pod waits for; empty if its container runs or has ended. `events` are its own, oldest first."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    if status.get("phase") in ("Running", "Succeeded", "Failed"):
        return ""
    if not spec.get("nodeName"):
        return _scheduler_words(pod, events)
    container = waiting_state(pod)
    reason, message = str(container.get("reason") or ""), str(container.get("message") or "")
    if reason in PULL_ERRORS or reason == "InvalidImageName":
        return f"the image cannot be pulled: {pull_words(pod, events)}"
    if reason in CREATE_ERRORS:
        return f"the container cannot be created: {message or reason}"
    return _creating_words(spec["nodeName"], reason, message, events)


def waiting_state(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    """Why a container of the pod waits, init containers first; empty if none does."""
    status = pod.get("status") or {}
    for name in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(name) or ():
            waiting = (container.get("state") or {}).get("waiting")
            if waiting and waiting.get("reason") != "PodInitializing":
                return {**waiting, "image": container.get("image")}
    return {}


def pull_words(pod: Mapping[str, Any], events: Sequence[Mapping[str, Any]] = ()) -> str:
    """The image that cannot be pulled, and what its registry said."""
    state = waiting_state(pod)
    texts = [str(state.get("message") or "")]
    texts += [str(event.get("message")) for event in reversed(events) if "pull image" in str(event.get("message"))]
    words = next((words for text in texts if (words := registry_words(text))), str(state.get("reason") or ""))
    image = str(state.get("image") or "")
    return words if image in words else f"{image}: {words}"


def registry_words(message: str) -> str:
    """A registry's own words in a message of Kubernetes; empty if it has none.

    >>> registry_words('rpc error: code = NotFound desc = failed to pull and unpack image "docker.io/library/p:9": '
    ... 'failed to resolve reference "docker.io/library/p:9": docker.io/library/p:9: not found')
    'docker.io/library/p:9: not found'
    >>> registry_words('Back-off pulling image "p:9"')
    ''
    """
    return _BEFORE_WORDS.sub("", message.strip()).strip()


def quota_words(message: str) -> str:
    """What a run waits for if the API server refuses its pods because of a quota; empty for any other message.

    >>> quota_words('pods "a" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=2, used: '
    ... 'requests.nvidia.com/gpu=7, limited: requests.nvidia.com/gpu=8')
    "waiting for the quota 'gpus' of the namespace: 2 of requests.nvidia.com/gpu needed, 7 of 8 in use"
    """
    found = _QUOTA.search(message)
    if found is None:
        return ""
    asked, used, limit = (_amounts(found[part]) for part in ("asked", "used", "limit"))
    parts = [
        f"{asked[name]} of {name} needed, {used.get(name, '?')} of {limit.get(name, '?')} in use" for name in asked
    ]
    return f"waiting for the quota '{found['name']}' of the namespace: {'; '.join(parts)}"


def demand_words(message: str) -> str:
    """What a target lacks if a quota demands requests or limits that its pods do not have; empty for other messages.

    >>> demand_words('pods "a" is forbidden: failed quota: q: must specify limits.cpu').partition(":")[0]
    "the quota 'q' of the namespace demands limits.cpu"
    """
    found = _UNDER_QUOTA.search(message)
    if found is None:
        return ""
    what = ", ".join(part.strip() for part in re.split(r"[,;]", found["what"]))
    options = "--cpus, --limit-cpus, --memory-per-node"
    return f"the quota '{found['name']}' of the namespace demands {what}: set them for the target ({options})"


def _amounts(text: str) -> dict[str, str]:
    return dict(part.strip().partition("=")[::2] for part in text.split(","))


def _scheduler_words(pod: Mapping[str, Any], events: Sequence[Mapping[str, Any]]) -> str:
    gates = [str(gate.get("name")) for gate in (pod.get("spec") or {}).get("schedulingGates") or ()]
    if any(gate.startswith(_KUEUE) for gate in gates):
        labels = (pod.get("metadata") or {}).get("labels") or {}
        return f"waiting for Kueue to admit the run to the queue '{labels.get(_KUEUE + 'queue-name', '')}'"
    if gates:
        return f"waiting for the scheduling gate {gates[0]}"
    machine = (pod.get("status") or {}).get("nominatedNodeName")
    if machine:
        return f"waiting for pods of lower priority to leave {machine}"
    condition = condition_of(pod, "PodScheduled")
    if condition.get("status") == "False" and condition.get("message"):
        return explain_unschedulable(str(condition["message"]))
    failed = [str(event.get("message")) for event in events if event.get("reason") == "FailedScheduling"]
    return explain_unschedulable(failed[-1]) if failed else "waiting for the scheduler of the cluster"


def condition_of(pod: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """A condition of a pod by its type; empty if the pod does not have it."""
    conditions: list[Mapping[str, Any]] = (pod.get("status") or {}).get("conditions") or []
    return next((each for each in conditions if each.get("type") == kind), {})


def _creating_words(machine: str, reason: str, message: str, events: Sequence[Mapping[str, Any]]) -> str:
    told = [event for event in events if event.get("reason") in _TELLING]
    last = told[-1] if told else {}
    why, text = last.get("reason"), str(last.get("message") or "")
    if why == "Pulling":
        return f"{machine} is pulling {text.removeprefix('Pulling ')}"
    if why in ("FailedMount", "FailedAttachVolume", "FailedMapVolume"):
        return f"waiting for a volume on {machine}: {text}"
    if why in ("FailedCreatePodSandBox", "NetworkNotReady"):
        return f"waiting for the network of the pod on {machine}: {text}"
    if why == "Failed" or (reason not in ("", "ContainerCreating", "PodInitializing") and message):
        return f"{machine} cannot start the container yet: {text or message}"
    return f"{machine} is creating the container"


def _group(events: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    grouped: dict[str, list[Mapping[str, Any]]] = {}
    for event in sorted(events, key=_time):
        about = (event.get("involvedObject") or event.get("regarding") or {}).get("name")
        grouped.setdefault(str(about), []).append(event)
    return grouped


def _time(event: Mapping[str, Any]) -> str:
    """When it was last seen. All of them are in UTC, so texts can be compared."""
    series = (event.get("series") or {}).get("lastObservedTime")
    times = (series, event.get("lastTimestamp"), event.get("eventTime"))
    created = (event.get("metadata") or {}).get("creationTimestamp")
    return str(next(filter(None, times), created) or "")


def _name(pod: Mapping[str, Any]) -> str:
    return str((pod.get("metadata") or {}).get("name"))
