"""From a run to the objects that it has in the cluster: a headless service and its pods. Pure.

The service owns the pods, so deleting it removes everything. Manifests are valid since Kubernetes 1.20.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainmaster.engines.kubernetes.options import PodOptions
from trainmaster.engines.kubernetes.pod_patch import CONTAINER, patch_pod
from trainmaster.shared.kubernetes_names import is_label_value
from trainmaster.shared.kubernetes_settings import OUR_PREFIX, KubernetesSettings, Volume

WORKSPACE = f"{OUR_PREFIX}workspace"
RUN = f"{OUR_PREFIX}run"
ATTEMPT = f"{OUR_PREFIX}attempt"
NODE = f"{OUR_PREFIX}node"
RUN_ID = f"{OUR_PREFIX}run-id"
"""An annotation: ids may be longer than a label."""
MANAGED_BY = "app.kubernetes.io/managed-by"

_LONGEST_SHORT, _DIGEST = 40, 12
_NOT_ALLOWED = re.compile(r"[^a-z0-9]+")
_SHM = "trainmaster-shm"


@dataclass(frozen=True)
class GangNames:
    """The names of everything that one attempt of a run has in the cluster."""

    run_id: str
    run: str
    """The run's id, shortened to what a label and a host name may be."""
    attempt: int
    service: str
    pods: tuple[str, ...]
    hosts: tuple[str, ...]
    """Under which the pods reach each other. Known before there are pods."""


@dataclass(frozen=True)
class PodVolume:
    """A volume of a pod, and where its container sees it."""

    name: str
    source: Mapping[str, Any]
    """As in `spec.volumes`, such as {"emptyDir": {}}."""
    path: str
    read_only: bool = False


def shorten(run_id: str, workspace: str = "") -> str:
    """A run's id as a part of names: at most 40 of [a-z0-9-], and different for every run of every workspace.

    >>> shorten("Digits_1700000000_ab12cd34")
    'digits-1700000000-ab12cd34-fadcc56ed4b0'
    """
    digest = hashlib.sha256(f"{workspace}\n{run_id}".encode()).hexdigest()[:_DIGEST]
    words = _NOT_ALLOWED.sub("-", run_id.lower()).strip("-")[: _LONGEST_SHORT - _DIGEST - 1].strip("-")
    return f"{words}-{digest}" if words else digest


def names_of(run_id: str, attempt: int, count: int, workspace: str = "") -> GangNames:
    """The names of an attempt with so many pods; `workspace` is the workspace's id."""
    short = shorten(run_id, workspace)
    service = f"tm-{short}-{attempt}"
    pods = tuple(f"{service}-{number}" for number in range(count))
    return GangNames(run_id, short, attempt, service, pods, tuple(f"{pod}.{service}" for pod in pods))


def labels_of(workspace: str, names: GangNames) -> dict[str, str]:
    """The labels of everything that belongs to an attempt."""
    return {
        MANAGED_BY: "trainmaster",
        WORKSPACE: workspace_label(workspace),
        RUN: names.run,
        ATTEMPT: str(names.attempt),
    }


def workspace_label(workspace: str) -> str:
    """A workspace's id as the value of a label.

    >>> workspace_label("5f0c9a1e"), workspace_label("a b")
    ('5f0c9a1e', 'c8687a08aa5d')
    """
    if workspace and is_label_value(workspace):
        return workspace
    return hashlib.sha256(workspace.encode()).hexdigest()[:_DIGEST]


def selector_of(workspace: str, names: GangNames | None = None) -> str:
    """The label selector of everything of a workspace, or of one attempt."""
    labels = {WORKSPACE: workspace_label(workspace)}
    labels |= {RUN: names.run, ATTEMPT: str(names.attempt)} if names is not None else {}
    return ",".join(f"{name}={value}" for name, value in labels.items())


def make_service(names: GangNames, labels: Mapping[str, str]) -> dict[str, Any]:
    """The headless service, by which pods have names before they are ready. It has no ports: names are all it gives."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": names.service, "labels": dict(labels), "annotations": {RUN_ID: names.run_id}},
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {name: labels[name] for name in (WORKSPACE, RUN, ATTEMPT)},
        },
    }


def owner_of(service: Mapping[str, Any]) -> dict[str, Any]:
    """The reference to a service that was created, for what it owns."""
    found = service["metadata"]
    return {"apiVersion": "v1", "kind": "Service", "name": found["name"], "uid": found["uid"]}


def make_pod(
    names: GangNames,
    number: int,
    options: PodOptions,
    command: Sequence[str],
    labels: Mapping[str, str],
    owner: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    volumes: Sequence[PodVolume] = (),
) -> dict[str, Any]:
    """The pod of node `number`; `volumes` are added to those of the target."""
    mounted = (*_own_volumes(options), *volumes)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(names, number, options.settings, labels, owner),
        "spec": {
            "restartPolicy": "Never",
            "hostname": names.pods[number],
            "subdomain": names.service,
            "terminationGracePeriodSeconds": options.settings.grace_seconds,
            "enableServiceLinks": False,
            "containers": [_container(options, command, env or {}, mounted)],
            "volumes": [{"name": volume.name, **volume.source} for volume in mounted],
            **_placement(options.settings, labels),
            **_identity(options),
        },
    }
    return patch_pod(pod, options.settings.pod_patch)


def work_volume(options: PodOptions, path: str) -> PodVolume:
    """Where a pod that is sent its files keeps them: for its own life, or in the cache of the target."""
    cache = options.settings.cache
    if cache.kind == "none":
        return PodVolume("trainmaster-work", {"emptyDir": {}}, path)
    volume = _source(Volume(cache.kind, cache.name, path))
    return PodVolume("trainmaster-cache", volume, path)


def _metadata(
    names: GangNames,
    number: int,
    settings: KubernetesSettings,
    labels: Mapping[str, str],
    owner: Mapping[str, Any] | None,
) -> dict[str, Any]:
    queue_labels, queue_annotations = _kueue(names, settings.queue)
    return {
        "name": names.pods[number],
        "labels": {**settings.labels, **queue_labels, **labels, NODE: str(number)},
        "annotations": {**settings.annotations, **queue_annotations, RUN_ID: names.run_id},
        **({"ownerReferences": [dict(owner)]} if owner is not None else {}),
    }


def _kueue(names: GangNames, queue: str) -> tuple[dict[str, str], dict[str, str]]:
    """What Kueue reads: it admits all pods of a group, or none."""
    if not queue:
        return {}, {}
    labels = {"kueue.x-k8s.io/queue-name": queue}
    if len(names.pods) == 1:
        return labels, {}
    return (
        {**labels, "kueue.x-k8s.io/pod-group-name": names.service},
        {"kueue.x-k8s.io/pod-group-total-count": str(len(names.pods))},
    )


def _container(
    options: PodOptions, command: Sequence[str], env: Mapping[str, str], mounted: Sequence[PodVolume]
) -> dict[str, Any]:
    policy = options.settings.image_pull_policy
    variables = {**options.env, **env}
    security = _container_security(options)
    return {
        "name": CONTAINER,
        "image": options.image,
        **({"imagePullPolicy": policy} if policy else {}),
        "command": list(command),
        "env": [{"name": name, "value": value} for name, value in variables.items()],
        "resources": {"requests": dict(options.requests), "limits": dict(options.limits)},
        "volumeMounts": [
            {"name": volume.name, "mountPath": volume.path, **({"readOnly": True} if volume.read_only else {})}
            for volume in mounted
        ],
        # The last lines of a program that could not be started are in the state of its pod.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **({"securityContext": security} if security else {}),
    }


def _own_volumes(options: PodOptions) -> list[PodVolume]:
    """What the target mounts in every pod. /dev/shm is memory, and counts to the limit of the pod's memory."""
    shm = {"emptyDir": {"medium": "Memory", "sizeLimit": options.shm_size}}
    found = [PodVolume(_SHM, shm, "/dev/shm")]
    settings = options.settings
    if settings.storage is not None:
        storage = Volume("claim", settings.storage.claim, settings.storage.path)
        found.append(PodVolume("trainmaster-storage", _source(storage), storage.path))
    for number, volume in enumerate(settings.volumes):
        found.append(PodVolume(f"volume-{number}", _source(volume), volume.path, volume.read_only))
    return found


def _source(volume: Volume) -> dict[str, Any]:
    if volume.kind == "claim":
        return {"persistentVolumeClaim": {"claimName": volume.name}}
    if volume.kind == "node":
        return {"hostPath": {"path": volume.name, "type": "DirectoryOrCreate"}}
    if volume.kind == "config":
        return {"configMap": {"name": volume.name}}
    return {"secret": {"secretName": volume.name}}


def _placement(settings: KubernetesSettings, labels: Mapping[str, str]) -> dict[str, Any]:
    """On which machines pods may run, and before which other pods."""
    found: dict[str, Any] = {}
    if settings.node_selector:
        found["nodeSelector"] = dict(settings.node_selector)
    if settings.tolerations:
        found["tolerations"] = [dict(each) for each in settings.tolerations]
    if settings.spread:
        found["affinity"] = {"podAntiAffinity": _apart(settings.spread, labels)}
    if settings.priority_class:
        found["priorityClassName"] = settings.priority_class
    if settings.scheduler:
        found["schedulerName"] = settings.scheduler
    return found


def _apart(spread: str, labels: Mapping[str, str]) -> dict[str, Any]:
    chosen = {name: labels[name] for name in (WORKSPACE, RUN, ATTEMPT)}
    term = {"labelSelector": {"matchLabels": chosen}, "topologyKey": "kubernetes.io/hostname"}
    if spread == "require":
        return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]}


def _identity(options: PodOptions) -> dict[str, Any]:
    """As whom pods run, and what they may do in the cluster: without a service account, nothing."""
    settings = options.settings
    found: dict[str, Any] = {"automountServiceAccountToken": bool(settings.service_account)}
    if settings.service_account:
        found["serviceAccountName"] = settings.service_account
    if settings.image_pull_secrets:
        found["imagePullSecrets"] = [{"name": name} for name in settings.image_pull_secrets]
    if options.has_host_ipc:
        found["hostIPC"] = True
    numbers = {
        "runAsUser": settings.run_as_user,
        "runAsGroup": settings.run_as_group,
        "fsGroup": settings.fs_group,
    }
    security: dict[str, Any] = {name: value for name, value in numbers.items() if value is not None}
    if _is_restricted(options):
        security |= {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    return {**found, **({"securityContext": security} if security else {})}


def _container_security(options: PodOptions) -> dict[str, Any]:
    found: dict[str, Any] = {}
    capabilities: dict[str, Any] = {"add": list(options.capabilities)} if options.capabilities else {}
    if options.is_privileged:
        found["privileged"] = True
    elif _is_restricted(options):
        found["allowPrivilegeEscalation"] = False
        capabilities["drop"] = ["ALL"]
    return {**found, **({"capabilities": capabilities} if capabilities else {})}


def _is_restricted(options: PodOptions) -> bool:
    """Whether pods keep to the restricted Pod Security Standard: whenever they do not run as root."""
    return bool(options.settings.run_as_user) and not options.is_privileged
