"""AmlCompute: a cluster of up to `max_nodes` nodes of this machine."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from trainmaster.sdk.compute.configurations import (
    ClusterConfiguration,
    check_scale,
    describe_azure_settings,
    idle_seconds,
)
from trainmaster.sdk.compute.status import AmlComputeStatus, NodeStateCounts, ScaleSettings
from trainmaster.sdk.compute.target import ComputeTarget
from trainmaster.shared.notices import warn

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace


class Cluster(ComputeTarget):
    """A cluster whose number of nodes has limits. v1 had two classes of them."""

    @property
    def vm_priority(self) -> str:
        """v1's priority; all runs have the same."""
        return str(self._option("vm_priority") or "dedicated")

    @property
    def scale_settings(self) -> ScaleSettings:
        """The least and the greatest number of nodes."""
        return ScaleSettings(int(self._option("min_nodes") or 0), self.nodes, int(self._option("idle_seconds") or 0))

    @property
    def status(self) -> AmlComputeStatus:
        """The result of `get_status()`, by its name of 2018."""
        return self.get_status()

    def get_status(self) -> AmlComputeStatus:
        """How many nodes are in use, and the limits of their number."""
        busy = int(self.occupancy()["busy"])
        current = max(busy, self.scale_settings.minimum_node_count)
        return AmlComputeStatus(
            current_node_count=current,
            target_node_count=current,
            node_state_counts=NodeStateCounts(running_node_count=busy, idle_node_count=current - busy),
            scale_settings=self.scale_settings,
            vm_size=self.vm_size,
            vm_priority=self.vm_priority,
            creation_time=self.created_on,
            modified_time=self.modified_on,
            provisioning_state_transition_time=self.modified_on,
            allocation_state_transition_time=self.modified_on,
        )

    def wait_for_completion(  # type: ignore[override]  # v1's order of parameters
        self,
        show_output: bool = False,
        min_node_count: int | None = None,
        timeout_in_minutes: float | None = 25,
        is_delete_operation: bool = False,
    ) -> None:
        """Returns at once: nodes of this machine need no provisioning."""
        if not show_output:
            return
        wanted = self.scale_settings.minimum_node_count if min_node_count is None else min_node_count
        print(f"{self.provisioning_state}\n{self._type} wait for completion finished\n")
        if wanted <= self.nodes:
            print("Minimum number of nodes requested have been provisioned")
        else:
            print(f"There will never be {wanted} nodes: '{self.name}' has at most {self.nodes}")

    def update(
        self,
        min_nodes: int | None = None,
        max_nodes: int | None = None,
        idle_seconds_before_scaledown: int | str | None = None,
    ) -> None:
        """Changes the limits that are given. Runs keep the nodes they have."""
        self.refresh_state()
        scale = self.scale_settings
        least = scale.minimum_node_count if min_nodes is None else min_nodes
        most = scale.maximum_node_count if max_nodes is None else max_nodes
        given = idle_seconds_before_scaledown
        check_scale(least, most)
        seconds = scale.idle_seconds_before_scaledown if given is None else idle_seconds(given)
        granted = self._workspace.backend.machine().grant(self.vm_size, most)
        for doubt in set(granted.doubts) - set(self._option("doubts") or ()):
            warn(f"target '{self.name}': {doubt}")
        self._replace(
            {"min_nodes": least, "idle_seconds": seconds, "doubts": builtins.list(granted.doubts)},
            nodes=most,
            cpus_per_node=granted.cpus_per_node,
            gpus_per_node=granted.gpus_per_node,
        )

    def list_nodes(self) -> builtins.list[dict[str, Any]]:
        """The nodes in use now, each with its run."""
        busy = {node: run.id for run in self._active() for node in run.nodes}
        idle = [node for node in range(self.nodes) if node not in busy]
        shown = sorted([*busy, *idle[: max(0, self.scale_settings.minimum_node_count - len(busy))]])
        return [
            {
                "nodeId": f"{self.name}-{node}",
                "ipAddress": "127.0.0.1",
                "port": None,
                "publicIpAddress": None,
                "privateIpAddress": "127.0.0.1",
                "nodeState": "running" if node in busy else "idle",
                "runId": busy.get(node),
            }
            for node in shown
        ]

    def add_identity(self, identity_type: str, identity_id: Any = None) -> None:
        """Recorded. Runs have your own rights."""
        self._change_azure(identity_type=identity_type, identity_id=identity_id)

    def remove_identity(self, identity_id: Any = None) -> None:
        """Forgets what `add_identity` recorded."""
        self._change_azure(identity_type=None, identity_id=None)

    def _change_azure(self, **values: Any) -> None:
        self.refresh_state()
        self._change(azure=describe_azure_settings({**(self._option("azure") or {}), **values}))

    def _properties(self) -> dict[str, Any]:
        return {
            "vmSize": self.vm_size,
            "vmPriority": self.vm_priority,
            "scaleSettings": self.scale_settings.serialize(),
            **(self._option("azure") or {}),
        }


class AmlCompute(Cluster):
    """A cluster. Its nodes are parts of this machine, as close to `vm_size` as the machine allows.

    >>> config = AmlCompute.provisioning_configuration(vm_size="STANDARD_D2_V2", max_nodes=4)   # doctest: +SKIP
    >>> cluster = ComputeTarget.create(ws, "cpu-cluster", config)                               # doctest: +SKIP
    """

    _type = "AmlCompute"

    @staticmethod
    def provisioning_configuration(
        vm_size: str = "",
        vm_priority: str = "dedicated",
        min_nodes: int = 0,
        max_nodes: int | None = None,
        idle_seconds_before_scaledown: int | str | None = 1800,
        admin_username: str | None = None,
        admin_user_password: str | None = None,
        admin_user_ssh_key: str | None = None,
        vnet_resourcegroup_name: str | None = None,
        vnet_name: str | None = None,
        subnet_name: str | None = None,
        tags: Mapping[str, str] | None = None,
        description: str | None = None,
        remote_login_port_public_access: str = "NotSpecified",
        identity_type: str | None = None,
        identity_id: Any = None,
        location: str | None = None,
        enable_node_public_ip: bool = True,
    ) -> ClusterConfiguration:
        """A cluster of up to `max_nodes` nodes. Parameters that only have a meaning in Azure are recorded."""
        return ClusterConfiguration(
            vm_size=vm_size,
            tags=tags,
            description=description,
            location=location,
            azure={
                "admin_username": admin_username,
                "admin_user_password": admin_user_password,
                "admin_user_ssh_key": admin_user_ssh_key,
                "vnet_resourcegroup_name": vnet_resourcegroup_name,
                "vnet_name": vnet_name,
                "subnet_name": subnet_name,
                "remote_login_port_public_access": remote_login_port_public_access,
                "identity_type": identity_type,
                "identity_id": identity_id,
                "enable_node_public_ip": enable_node_public_ip,
            },
            vm_priority=vm_priority,
            min_nodes=min_nodes,
            max_nodes=max_nodes,
            idle_seconds_before_scaledown=idle_seconds_before_scaledown,
        )

    @staticmethod
    def supported_vmsizes(workspace: Workspace, location: str | None = None) -> builtins.list[dict[str, Any]]:
        """The VM sizes that Trainmaster knows."""
        return vm_size_list(workspace)

    @staticmethod
    def list_usages(
        workspace: Workspace, show_all: bool = False, location: str | None = None
    ) -> builtins.list[dict[str, Any]]:
        """Nothing: Trainmaster has no quotas."""
        return []

    @staticmethod
    def list_quotas(workspace: Workspace, location: str | None = None) -> builtins.list[dict[str, Any]]:
        """Nothing: Trainmaster has no quotas."""
        return []

    @staticmethod
    def update_quotas(
        workspace: Workspace, vm_family: Any, limit: int | None = None, location: str | None = None
    ) -> NoReturn:
        """Not here."""
        raise NotImplementedError(
            "AmlCompute.update_quotas: Trainmaster has no quotas. Limit a cluster with update(max_nodes=...)."
        )


def vm_size_list(workspace: Workspace) -> builtins.list[dict[str, Any]]:
    """The known VM sizes, with v1's keys."""
    return [
        {"name": size.name, "vCPUs": size.vcpus, "gpus": size.gpus, "memoryGB": size.memory_gb}
        for size in workspace.backend.machine().sizes
    ]
