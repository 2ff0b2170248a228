"""The settings of a target on Kubernetes, as its record has them: read and checked in one place. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.kubernetes_names import (
    is_image,
    is_label_key,
    is_label_name,
    is_label_value,
    is_object_name,
)
from trainmaster.shared.quantities import cpu_millis, memory_bytes
from trainmaster.shared.serialization import PlainDataError, from_plain, to_plain

UNLIMITED_NODES = 1000
"""How many nodes a run may have if the target does not say it: the cluster's scheduler decides."""
LEAST_MEMORY = 16 * 2**20
OUR_PREFIX = "trainmaster.io/"
"""Labels and annotations with this prefix are ours."""

VolumeKind = Literal["claim", "node", "config", "secret"]
CacheKind = Literal["none", "claim", "node"]
Spread = Literal["", "prefer", "require"]
ServiceType = Literal["ClusterIP", "NodePort", "LoadBalancer"]
PullPolicy = Literal["", "Always", "IfNotPresent", "Never"]


@dataclass(frozen=True)
class Volume:
    """Something that pods mount: a claim, a folder of the machine (`node`), a config map or a secret."""

    kind: VolumeKind
    name: str
    """The name of the claim, config map or secret; for `node`, the folder on the machine."""
    path: str
    """Where pods see it."""
    read_only: bool = False


@dataclass(frozen=True)
class Storage:
    """A claim whose root this machine sees at `path`, as the pods do."""

    claim: str
    path: str = ""
    """Empty means the mount point of the workspace's folder, until the target is stored."""


@dataclass(frozen=True)
class Cache:
    """Where pods keep environments and snapshots that were sent to them."""

    kind: CacheKind = "none"
    name: str = ""
    """The claim, or the folder on the machine."""


@dataclass(frozen=True)
class KubernetesSettings:
    """What a target on Kubernetes is: how the cluster is reached, and what its pods are like."""

    context: str = ""
    """The context of the kubeconfig file; empty means the current one."""
    kubeconfig: str = ""
    """The kubeconfig file; empty means the usual one."""
    in_cluster: bool = False
    """Whether the dispatcher runs in the cluster and uses the account of its own pod."""
    namespace: str = ""
    """Empty means that of the context."""
    image: str = ""
    """The image of runs that name none."""
    image_pull_policy: PullPolicy = ""
    image_pull_secrets: tuple[str, ...] = ()
    python: str = "python3"
    """The Python of the image with which our programs run: 3.6 or newer."""
    cpus: str = ""
    """The CPUs that each pod requests, such as 4 or 500m; empty means none."""
    memory: str = ""
    """The memory that each pod requests and may use, such as 16Gi; empty means no limit."""
    limit_cpus: bool = False
    """Whether pods may not use more CPUs than they request."""
    gpu_resource: str = "nvidia.com/gpu"
    """The device plugin's name for GPUs."""
    resources: Mapping[str, str] = field(default_factory=dict)
    """Further devices and resources, such as {"rdma/hca": "1"}."""
    shm_size: str = ""
    """The size of /dev/shm; empty means that of the run, or 2Gi."""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, Any], ...] = ()
    spread: Spread = ""
    """Whether the pods of a run go to different machines: where possible, or always."""
    priority_class: str = ""
    service_account: str = ""
    volumes: tuple[Volume, ...] = ()
    run_as_user: int | None = None
    run_as_group: int | None = None
    fs_group: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    queue: str = ""
    """The local queue of Kueue."""
    scheduler: str = ""
    """The scheduler; empty means the cluster's default."""
    pod_patch: Mapping[str, Any] = field(default_factory=dict)
    """What is merged into every pod at the end (`engines/kubernetes/pod_patch.py`)."""
    storage: Storage | None = None
    cache: Cache = field(default_factory=Cache)
    grace_seconds: int = 30
    """How long a pod may take to end when it is stopped."""
    gang_seconds: int = 300
    """After how long a run gives back its pods if not all of them have got a machine."""
    service_type: ServiceType = "ClusterIP"
    """How services of models are reached: inside of the cluster, by a port of its nodes, or by a load balancer."""
    service_address: str = ""
    """The host by which users reach ports of nodes, or the load balancer."""
    ingress_host: str = ""
    """The name of services behind an Ingress, `*.models.example.org`: the star becomes the name of the service."""
    ingress_class: str = ""
    ingress_secret: str = ""
    """The secret with the certificate of the Ingress; without one it has no TLS."""
    abandoned_after_seconds: int = 86400
    """How long a pod waits to be fetched after its run has ended."""


NAMES = tuple(each.name for each in fields(KubernetesSettings))


def read_settings(options: Mapping[str, Any]) -> KubernetesSettings:
    """The settings in the options of a target; refuses what no pod can have. Options of other parts are ignored."""
    given = {name: value for name, value in options.items() if name in NAMES}
    try:
        settings = from_plain(KubernetesSettings, given, "the target")
    except PlainDataError as error:
        raise ComputeTargetException("a setting of the target cannot be used", cause=str(error)) from None
    check_settings(settings)
    return settings


def write_settings(settings: KubernetesSettings) -> dict[str, Any]:
    """The options of a target's record: only settings that are not the default.

    >>> write_settings(KubernetesSettings(namespace="train", cpus="4"))
    {'namespace': 'train', 'cpus': '4'}
    """
    default = to_plain(KubernetesSettings())
    return {name: value for name, value in to_plain(settings).items() if value != default[name]}


def check_settings(settings: KubernetesSettings) -> None:
    """Refuses settings that Kubernetes would refuse, with the name of the setting."""
    _check_names(settings)
    _check_amounts(settings)
    _check_labels(settings)
    _check_volumes(settings)
    for toleration in settings.tolerations:
        check_toleration(toleration)
    for name in ("grace_seconds", "gang_seconds", "abandoned_after_seconds"):
        if not 1 <= getattr(settings, name) <= 10_000_000:
            raise _refusal(name, getattr(settings, name), "a number of seconds of at least 1")
    for name in ("run_as_user", "run_as_group", "fs_group"):
        value = getattr(settings, name)
        if value is not None and not 0 <= value < 2**31:
            raise _refusal(name, value, "the number of a user or group")


def check_toleration(toleration: Mapping[str, Any]) -> None:
    """Refuses what is no toleration of Kubernetes."""
    known = {"key", "operator", "value", "effect", "tolerationSeconds"}
    unknown = sorted(set(toleration) - known)
    if unknown:
        raise _refusal("tolerations", dict(toleration), f"made of {', '.join(sorted(known))}")
    if toleration.get("operator", "Equal") not in ("Equal", "Exists"):
        raise _refusal("tolerations", dict(toleration), "with the operator Equal or Exists")
    if toleration.get("effect", "") not in ("", "NoSchedule", "PreferNoSchedule", "NoExecute"):
        raise _refusal("tolerations", dict(toleration), "with the effect NoSchedule, PreferNoSchedule or NoExecute")
    key = toleration.get("key", "")
    if not isinstance(key, str) or (key and not is_label_key(key)):
        raise _refusal("tolerations", dict(toleration), "with the key of a taint")
    if toleration.get("operator") == "Exists" and toleration.get("value"):
        raise _refusal("tolerations", dict(toleration), "without a value if the operator is Exists")
    if not key and toleration.get("operator") != "Exists":
        raise _refusal("tolerations", dict(toleration), "with a key, or with the operator Exists for every taint")


def _check_names(settings: KubernetesSettings) -> None:
    for name in ("namespace", "queue"):
        value = getattr(settings, name)
        if value and not is_label_name(value):
            raise _refusal(name, value, "lower case letters, digits and dashes, 63 at most")
    for name in ("service_account", "priority_class", "scheduler", "ingress_class", "ingress_secret"):
        value = getattr(settings, name)
        if value and not is_object_name(value):
            raise _refusal(name, value, "the name of an object of Kubernetes")
    for name in ("service_address", "ingress_host"):
        value = getattr(settings, name)
        if value and not is_object_name(value.replace("*.", "x.", 1)):
            raise _refusal(name, value, "the name or address of a host")
    for value in settings.image_pull_secrets:
        if not is_object_name(value):
            raise _refusal("image_pull_secrets", value, "the names of secrets")
    if settings.image and not is_image(settings.image):
        raise _refusal("image", settings.image, "the name of an image, such as python:3.11-slim")
    if not settings.python or any(letter.isspace() for letter in settings.python):
        raise _refusal("python", settings.python, "a program, such as python3 or /opt/conda/bin/python")


def _check_amounts(settings: KubernetesSettings) -> None:
    if settings.cpus and not cpu_millis(settings.cpus):
        raise _refusal("cpus_per_node", settings.cpus, "a number of CPUs, such as 4, 0.5 or 500m")
    for name, value in (("memory_per_node", settings.memory), ("shm_size", settings.shm_size)):
        if value and (memory_bytes(value) or 0) < LEAST_MEMORY:
            raise _refusal(name, value, "a size of at least 16Mi, such as 16Gi")
    if "/" not in settings.gpu_resource or not is_label_key(settings.gpu_resource):
        raise _refusal("gpu_resource", settings.gpu_resource, "the name of a device plugin, such as amd.com/gpu")
    for name, amount in settings.resources.items():
        if name in ("cpu", "memory"):
            raise ComputeTargetException(f"resources must not have '{name}'", hint=f"Use {_OWN[name]} instead.")
        if not is_label_key(name) or not amount or memory_bytes(amount) is None:
            raise _refusal("resources", f"{name}={amount}", "names with amounts, such as rdma/hca=1")


_OWN = {"cpu": "cpus_per_node", "memory": "memory_per_node"}


def _check_labels(settings: KubernetesSettings) -> None:
    for name in ("labels", "annotations", "node_selector"):
        for key, value in getattr(settings, name).items():
            if not is_label_key(key):
                raise _refusal(name, key, "names as Kubernetes has them, such as team or example.org/team")
            if name != "node_selector" and key.startswith(OUR_PREFIX):
                raise ComputeTargetException(f"{name} must not have {key}: Trainmaster sets it")
            if name != "annotations" and not is_label_value(value):
                raise _refusal(name, f"{key}={value}", "values of letters, digits, '-', '_' and '.', 63 at most")


def _check_volumes(settings: KubernetesSettings) -> None:
    places = [volume.path for volume in settings.volumes]
    for volume in settings.volumes:
        _check_path("the path of a volume", volume.path)
        if volume.kind == "node":
            _check_path("the folder of a volume", volume.name)
        elif not is_object_name(volume.name):
            raise _refusal("volumes", volume.name, "with the name of a claim, config map or secret")
    if settings.storage is not None:
        if settings.storage.path:
            _check_path("the path of the storage", settings.storage.path)
            places.append(settings.storage.path)
        if not is_object_name(settings.storage.claim):
            raise _refusal("storage", settings.storage.claim, "with the name of a claim")
    twice = next((path for path in places if places.count(path) > 1), None)
    if twice is not None:
        raise ComputeTargetException(f"two volumes have the path {twice}", hint="Give each a path of its own.")
    _check_cache(settings)


def _check_cache(settings: KubernetesSettings) -> None:
    cache = settings.cache
    if cache.kind == "node":
        _check_path("the folder of the cache", cache.name)
    if cache.kind == "claim" and not is_object_name(cache.name):
        raise _refusal("cache", cache.name, "with the name of a claim")
    if cache.kind != "none" and settings.storage is not None:
        raise ComputeTargetException(
            "storage and cache cannot be used together",
            cause="With a shared storage, pods read everything in place.",
            hint="Leave one of them out.",
        )


def _check_path(what: str, path: str) -> None:
    parts = path.split("/")
    if not path.startswith("/") or path == "/" or ".." in parts or ":" in path or "\n" in path:
        raise ComputeTargetException(
            f"{what} must be an absolute path, not {path!r}", hint="Write /mnt/shared, for example."
        )


def _refusal(name: str, value: object, rule: str) -> ComputeTargetException:
    return ComputeTargetException(f"{name} must be {rule}, not {value!r}")
