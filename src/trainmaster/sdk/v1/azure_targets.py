"""v1's kinds of compute targets that exist only in Azure.

Some become nodes of this machine. The others are recorded, so that programs which name them work; a submit to one is
refused with the reason (`dispatcher/runs/capacity.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from trainmaster.sdk.compute.clusters import Cluster
from trainmaster.sdk.compute.configurations import (
    ClusterConfiguration,
    ComputeTargetAttachConfiguration,
    ComputeTargetProvisioningConfiguration,
    MachineConfiguration,
    describe_azure_settings,
)
from trainmaster.sdk.compute.kubernetes import find_cluster
from trainmaster.sdk.compute.target import ComputeTarget
from trainmaster.shared.records import TargetRecord

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace


@dataclass
class BatchAiConfiguration(ClusterConfiguration):
    """The description of a cluster in programs of 2018."""

    kind = "BatchAiCompute"


class BatchAiCompute(Cluster):
    """A cluster, with the name and parameters of October 2018."""

    _type = "BatchAI"

    @staticmethod
    def provisioning_configuration(
        vm_size: str = "STANDARD_D2_V2",
        vm_priority: str = "dedicated",
        autoscale_enabled: bool = True,
        cluster_min_nodes: int | None = 0,
        cluster_max_nodes: int | None = None,
        location: str | None = None,
        tags: Mapping[str, str] | None = None,
        description: str | None = None,
    ) -> BatchAiConfiguration:
        """A cluster of up to `cluster_max_nodes` nodes; without autoscaling, the default is `cluster_min_nodes`."""
        least = 0 if cluster_min_nodes is None else cluster_min_nodes
        most = cluster_max_nodes
        if most is None and not autoscale_enabled:
            most = max(1, least) if isinstance(least, int) else least
        return BatchAiConfiguration(
            vm_size=vm_size,
            tags=tags,
            description=description,
            location=location,
            azure={"autoscale_enabled": autoscale_enabled},
            vm_priority=vm_priority,
            min_nodes=least,
            max_nodes=most,
        )


@dataclass
class DsvmConfiguration(MachineConfiguration):
    """The description of one machine in programs of 2018."""

    kind = "DsvmCompute"


class DsvmCompute(ComputeTarget):
    """v1's Data Science Virtual Machine; here one node of this machine."""

    _type = "VirtualMachine"

    @staticmethod
    def provisioning_configuration(
        vm_size: str = "Standard_DS3_v2",
        ssh_port: int | str | None = None,
        location: str | None = None,
        admin_username: str | None = None,
        admin_user_password: str | None = None,
        admin_user_ssh_key: str | None = None,
        tags: Mapping[str, str] | None = None,
        description: str | None = None,
    ) -> DsvmConfiguration:
        """One machine of the size `vm_size`. Parameters that only have a meaning in Azure are recorded."""
        return DsvmConfiguration(
            vm_size=vm_size,
            tags=tags,
            description=description,
            location=location,
            azure={
                "ssh_port": ssh_port,
                "admin_username": admin_username,
                "admin_user_password": admin_user_password,
                "admin_user_ssh_key": admin_user_ssh_key,
            },
        )

    @property
    def address(self) -> str:
        """The address of the target."""
        return "127.0.0.1"

    @property
    def ssh_port(self) -> int:
        """The SSH port of the target."""
        return int((self._option("azure") or {}).get("ssh_port") or 22)


@dataclass
class RecordedMixin:
    """A target that is only recorded."""

    kind: ClassVar[str] = ""
    engine: ClassVar[str] = ""
    settings: dict[str, Any] = field(default_factory=dict)

    def record(self, name: str, workspace: Workspace) -> TargetRecord:
        """The record of the target, on which no jobs run."""
        options = {"class": self.kind, "azure": describe_azure_settings(self.settings)}
        return TargetRecord(name, self.engine, nodes=0, cpus_per_node=0, gpus_per_node=0, options=options)


@dataclass
class AksProvisioningConfiguration(RecordedMixin, ComputeTargetProvisioningConfiguration):
    """A cluster for services."""

    kind = "AksCompute"
    engine = "services"


@dataclass
class AksAttachConfiguration(RecordedMixin, ComputeTargetAttachConfiguration):
    """An existing cluster for services."""

    kind = "AksCompute"
    engine = "services"

    def record(self, name: str, workspace: Workspace) -> TargetRecord:
        """The record, with the context of the kubeconfig file that has the cluster's name, if there is one."""
        recorded = super().record(name, workspace)
        resource = str(self.settings.get("resource_id") or "").rstrip("/").rpartition("/")[2]
        found, _ = find_cluster(str(self.settings.get("cluster_name") or resource), "default", workspace)
        if found is None:
            return recorded
        reached = {key: found.options[key] for key in ("context", "namespace")}
        return replace(recorded, options={**recorded.options, **reached})


class AksCompute(ComputeTarget):
    """v1's cluster for services. As in v1, it takes no training jobs: for those, use KubernetesCompute."""

    _type = "AKS"

    @staticmethod
    def provisioning_configuration(
        agent_count: int | None = None, vm_size: str | None = None, **azure_only: Any
    ) -> AksProvisioningConfiguration:
        """Recorded."""
        return AksProvisioningConfiguration(settings={"agent_count": agent_count, "vm_size": vm_size, **azure_only})

    @staticmethod
    def attach_configuration(
        resource_group: str | None = None,
        cluster_name: str | None = None,
        resource_id: str | None = None,
        cluster_purpose: str | None = None,
        **azure_only: Any,
    ) -> AksAttachConfiguration:
        """Recorded."""
        given = {"resource_group": resource_group, "cluster_name": cluster_name, "resource_id": resource_id}
        return AksAttachConfiguration(settings={**given, "cluster_purpose": cluster_purpose, **azure_only})


@dataclass
class HDInsightConfiguration(RecordedMixin, ComputeTargetAttachConfiguration):
    """A Spark cluster of Azure."""

    kind = "HDInsightCompute"
    engine = "hdinsight"


class HDInsightCompute(ComputeTarget):
    """v1's Spark cluster: recorded. As in v1, estimators refuse it."""

    _type = "HDInsight"

    @staticmethod
    def attach_configuration(
        username: str,
        subscription_id: str | None = None,
        resource_group: str | None = None,
        cluster_name: str | None = None,
        resource_id: str | None = None,
        address: str | None = None,
        ssh_port: int = 22,
        password: str = "",
        private_key_file: str = "",
        private_key_passphrase: str = "",
    ) -> HDInsightConfiguration:
        """Recorded, without the password."""
        return HDInsightConfiguration(
            settings={
                "username": username,
                "subscription_id": subscription_id,
                "resource_group": resource_group,
                "cluster_name": cluster_name,
                "resource_id": resource_id,
                "address": address,
                "ssh_port": ssh_port,
                "private_key_file": private_key_file or None,
            }
        )
