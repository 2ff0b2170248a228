"""KubernetesCompute: a namespace of a Kubernetes cluster."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import ComputeTargetException
from trainmaster.sdk.compute.configurations import (
    ComputeTargetAttachConfiguration,
    ComputeTargetProvisioningConfiguration,
    describe_azure_settings,
)
from trainmaster.sdk.compute.status import Occupancy
from trainmaster.sdk.compute.target import ComputeTarget
from trainmaster.shared.kubernetes_settings import (
    UNLIMITED_NODES,
    KubernetesSettings,
    check_settings,
    read_settings,
    write_settings,
)
from trainmaster.shared.kubernetes_texts import read_cache, read_pairs, read_storage, read_toleration, read_volume
from trainmaster.shared.notices import warn
from trainmaster.shared.pod_sizes import find_pod_size
from trainmaster.shared.quantities import cpu_millis, show_memory
from trainmaster.shared.records import TargetCheck, TargetRecord
from trainmaster.shared.serialization import from_plain, to_plain
from trainmaster.shared.vm_sizes import VmSizes

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace

DEFAULT_IMAGE = "python:3.11-slim"
"""Environments are built outside of the image, so any image with a Python will do."""
_KIND, _ENGINE = "KubernetesCompute", "kubernetes"


@dataclass
class KubernetesConfiguration(ComputeTargetProvisioningConfiguration):
    """A namespace of a cluster, and what pods in it are like."""

    kind = _KIND
    engine = _ENGINE
    settings: KubernetesSettings = field(default_factory=KubernetesSettings)
    nodes: int | None = None
    vm_size: str = ""
    gpus_per_node: int | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    description: str = ""

    def __post_init__(self) -> None:
        self.validate_configuration()

    def validate_configuration(self) -> None:
        check_settings(self.settings)
        for name, least in (("nodes", 1), ("gpus_per_node", 0)):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < least):
                raise ComputeTargetException(f"{name} must be a whole number of at least {least}, not {value!r}")

    def record(self, name: str, workspace: Workspace) -> TargetRecord:
        """The record of the target, once the cluster has answered."""
        self.validate_configuration()
        record = self._record(name, workspace)
        for check in check_cluster(record, workspace, starts_pod=False):
            if not check.is_ok:
                warn(f"target '{name}': {check.message}")
        return record

    def _record(self, name: str, workspace: Workspace) -> TargetRecord:
        machine = workspace.backend.machine()
        settings, gpus = self.settings, self.gpus_per_node
        if not settings.kubeconfig and not settings.in_cluster and machine.is_here:
            # The dispatcher may have been started in another shell.
            settings = replace(settings, kubeconfig=_kubeconfig_of_shell())
        if self.vm_size:
            size = find_pod_size(VmSizes({each.name: each for each in machine.sizes}), self.vm_size)
            settings = replace(settings, cpus=settings.cpus or size.cpus, memory=settings.memory or size.memory)
            gpus = size.gpus if gpus is None else gpus
        options = {"class": self.kind, "vm_size": self.vm_size, **write_settings(settings)}
        words = {"tags": dict(self.tags or {}), "description": self.description or ""}
        return TargetRecord(
            name=name,
            engine=self.engine,
            nodes=self.nodes or UNLIMITED_NODES,
            # A script with a part of a CPU still has one.
            cpus_per_node=-(-(cpu_millis(settings.cpus) or 0) // 1000),
            gpus_per_node=gpus or 0,
            options={**options, **words},
        )


@dataclass
class KubernetesAttachConfiguration(ComputeTargetAttachConfiguration):
    """A cluster as v1 named it. It can be used if a context of the kubeconfig file has its name."""

    kind = _KIND
    engine = _ENGINE
    resource_id: str = ""
    namespace: str = "default"
    azure: dict[str, Any] = field(default_factory=dict)

    @property
    def context(self) -> str:
        """The name of the cluster, under which `az aks get-credentials` puts it into the kubeconfig file."""
        return self.resource_id.rstrip("/").rpartition("/")[2]

    def record(self, name: str, workspace: Workspace) -> TargetRecord:
        """A target that can be used, or else one that is only recorded."""
        azure = describe_azure_settings(self.azure)
        found, problem = find_cluster(self.context, self.namespace, workspace)
        if found is None:
            warn(
                f"target '{name}' is only recorded: {problem}. To use the cluster, have a context of its name in the "
                "kubeconfig file ('az aks get-credentials' makes one) and attach it again, or create the target with "
                "KubernetesCompute.configuration(context=..., namespace=...)"
            )
            options = {"class": self.kind, "azure": azure}
            return TargetRecord(name, self.engine, nodes=0, cpus_per_node=0, gpus_per_node=0, options=options)
        return replace(found, name=name, options={**found.options, "azure": azure})


class KubernetesCompute(ComputeTarget):
    """A namespace of a Kubernetes cluster. Each node of a run is a pod (docs/guide/kubernetes.md)."""

    _type = "Kubernetes"

    @staticmethod
    def configuration(
        context: str = "",
        namespace: str = "",
        image: str = DEFAULT_IMAGE,
        nodes: int | None = None,
        vm_size: str = "",
        *,
        cpus_per_node: float | str | None = None,
        gpus_per_node: int | None = None,
        memory_per_node: int | str | None = None,
        limit_cpus: bool = False,
        gpu_resource: str = "nvidia.com/gpu",
        resources: Mapping[str, Any] | Sequence[str] | None = None,
        shm_size: str = "",
        storage: str | Mapping[str, Any] | None = None,
        cache: str | Mapping[str, Any] | None = None,
        node_selector: Mapping[str, Any] | Sequence[str] | None = None,
        tolerations: Sequence[str | Mapping[str, Any]] = (),
        spread: bool | str = False,
        priority_class: str = "",
        queue: str = "",
        scheduler: str = "",
        service_account: str = "",
        volumes: Sequence[str | Mapping[str, Any]] = (),
        python: str = "python3",
        image_pull_secrets: Sequence[str] = (),
        image_pull_policy: str = "",
        run_as_user: int | None = None,
        run_as_group: int | None = None,
        fs_group: int | None = None,
        labels: Mapping[str, Any] | Sequence[str] | None = None,
        annotations: Mapping[str, Any] | Sequence[str] | None = None,
        pod_patch: Mapping[str, Any] | None = None,
        kubeconfig: str | os.PathLike[str] = "",
        in_cluster: bool = False,
        grace_seconds: int = 30,
        gang_seconds: int = 300,
        service_type: str = "ClusterIP",
        service_address: str = "",
        ingress_host: str = "",
        ingress_class: str = "",
        ingress_secret: str = "",
        tags: Mapping[str, str] | None = None,
        description: str = "",
    ) -> KubernetesConfiguration:
        """A namespace of the cluster that a context of the kubeconfig file names, and what pods in it request.

        `nodes` is the most nodes that one run may have; without it, the cluster decides. `vm_size` requests what a
        machine of that size leaves to pods; `cpus_per_node`, `memory_per_node` ("16Gi") and `gpus_per_node` say it
        directly. `image` is for runs that name no image of their own.

        With `storage` ("claim=NAME,path=/mnt/shared"), pods see the workspace in a volume that this machine has at that
        path. Without it, files are sent to the pods; `cache` ("claim=NAME" or "node=/FOLDER") keeps them for others.

        `tolerations` are written as taints ("gpu=yes:NoSchedule"), `volumes` as "claim=data,path=/data,read-only".
        `spread` puts the pods of a run on different machines: True, or "prefer". `pod_patch` is merged into every pod.

        The last five say how services of models are reached (docs/guide/deploying.md): by `service_type` ("ClusterIP",
        "NodePort" or "LoadBalancer") at `service_address`, or by an Ingress for `ingress_host`
        ("*.models.example.org") with the certificate in `ingress_secret`.

        >>> KubernetesCompute.configuration(context="prod", namespace="train", gpus_per_node=1)     # doctest: +SKIP
        """
        given = {
            "context": context,
            "namespace": namespace,
            "image": image,
            "cpus": "" if cpus_per_node is None else f"{cpus_per_node}",
            "memory": _size(memory_per_node),
            "limit_cpus": limit_cpus,
            "gpu_resource": gpu_resource,
            "resources": read_pairs("resources", resources),
            "shm_size": shm_size,
            "storage": to_plain(read_storage(storage)),
            "cache": to_plain(read_cache(cache)),
            "node_selector": read_pairs("node_selector", node_selector),
            "tolerations": [read_toleration(each) for each in _list("tolerations", tolerations)],
            "spread": {True: "require", False: ""}.get(spread, spread) if isinstance(spread, bool) else spread,
            "priority_class": priority_class,
            "queue": queue,
            "scheduler": scheduler,
            "service_account": service_account,
            "volumes": [to_plain(read_volume(each)) for each in _list("volumes", volumes)],
            "python": python,
            "image_pull_secrets": _list("image_pull_secrets", image_pull_secrets),
            "image_pull_policy": image_pull_policy,
            "run_as_user": run_as_user,
            "run_as_group": run_as_group,
            "fs_group": fs_group,
            "labels": read_pairs("labels", labels),
            "annotations": read_pairs("annotations", annotations),
            "pod_patch": dict(pod_patch or {}),
            "kubeconfig": os.path.abspath(os.path.expanduser(kubeconfig)) if kubeconfig else "",
            "in_cluster": in_cluster,
            "grace_seconds": grace_seconds,
            "gang_seconds": gang_seconds,
            "service_type": service_type,
            "service_address": service_address,
            "ingress_host": ingress_host,
            "ingress_class": ingress_class,
            "ingress_secret": ingress_secret,
        }
        return KubernetesConfiguration(
            settings=read_settings(given),
            nodes=nodes,
            vm_size=vm_size,
            gpus_per_node=gpus_per_node,
            tags=dict(tags or {}),
            description=description,
        )

    @staticmethod
    def attach_configuration(
        resource_id: str | None = None,
        namespace: str | None = None,
        identity_type: str | None = None,
        identity_ids: Any = None,
    ) -> KubernetesAttachConfiguration:
        """A cluster whose name, the last part of `resource_id`, is that of a context of the kubeconfig file.

        Without such a context, a submit to the target is refused and says how to make it usable.
        """
        return KubernetesAttachConfiguration(
            resource_id=resource_id or "",
            namespace=namespace or "default",
            azure={
                "resource_id": resource_id,
                "namespace": namespace,
                "identity_type": identity_type,
                "identity_ids": identity_ids,
            },
        )

    @property
    def namespace(self) -> str:
        """The namespace of its pods; empty if it is that of the context."""
        return str(self._option("namespace") or "")

    @property
    def is_usable(self) -> bool:
        """Whether runs can be submitted to it: whether it is known how its cluster is reached."""
        return self.nodes > 0

    def get_status(self) -> Occupancy:
        """How many nodes its runs have or wait for."""
        return self.occupancy()

    def test(self, starts_pod: bool = True) -> list[TargetCheck]:
        """Tries the server, every permission and, with a pod that is removed again, the image and the storage."""
        if not self.is_usable:
            return [TargetCheck("target", False, "the cluster is only recorded: it is not known how to reach it")]
        return check_cluster(self._record, self.workspace, starts_pod)

    def _properties(self) -> dict[str, Any]:
        names = ("context", "namespace", "image", "queue", "storage")
        return {**{name: self._option(name) for name in names}, **super()._properties()}


def find_cluster(context: str, namespace: str, workspace: Workspace) -> tuple[TargetRecord | None, str]:
    """A target for the cluster of this context, if it answers; otherwise why not."""
    if not context:
        return None, "nothing names a cluster"
    settings = KubernetesSettings(context=context, namespace=namespace, image=DEFAULT_IMAGE)
    try:
        return KubernetesConfiguration(settings=settings).record("cluster", workspace), ""
    except ComputeTargetException as error:
        return None, error.headline


def check_cluster(target: TargetRecord, workspace: Workspace, starts_pod: bool) -> list[TargetCheck]:
    """What works and what does not. Raises an error if the cluster cannot be reached at all."""
    with workspace.backend.open_connection() as connection:
        found = connection.call("targets.ask_kubernetes", target=to_plain(target), starts_pod=starts_pod)
    return [from_plain(TargetCheck, each) for each in found]


def _kubeconfig_of_shell() -> str:
    """The kubeconfig file that this program's variables name; empty if they name none or several."""
    path = os.environ.get("KUBECONFIG", "")
    return os.path.abspath(path) if path and os.path.isfile(path) else ""


def _size(memory: int | str | None) -> str:
    if memory is None:
        return ""
    return show_memory(memory) if isinstance(memory, int) else memory


def _list(name: str, given: Any) -> list[Any]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise ComputeTargetException(f"{name} must be a list, not {given!r}")
    return list(given)
