"""ComputeInstance: v1's machine for notebooks; here one node of this machine."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainmaster.sdk.compute.clusters import vm_size_list
from trainmaster.sdk.compute.configurations import MachineConfiguration
from trainmaster.sdk.compute.status import ComputeInstanceStatus
from trainmaster.sdk.compute.target import ComputeTarget

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace


@dataclass
class InstanceConfiguration(MachineConfiguration):
    """One machine."""

    kind = "ComputeInstance"


class ComputeInstance(ComputeTarget):
    """One node of this machine that can be stopped. While it is stopped, it refuses runs."""

    _type = "ComputeInstance"

    @staticmethod
    def provisioning_configuration(
        vm_size: str = "",
        ssh_public_access: bool = False,
        admin_user_ssh_public_key: str | None = None,
        vnet_resourcegroup_name: str | None = None,
        vnet_name: str | None = None,
        subnet_name: str | None = None,
        tags: Mapping[str, str] | None = None,
        description: str | None = None,
        assigned_user_object_id: str | None = None,
        assigned_user_tenant_id: str | None = None,
    ) -> InstanceConfiguration:
        """One machine of the size `vm_size`. Parameters that only have a meaning in Azure are recorded."""
        return InstanceConfiguration(
            vm_size=vm_size,
            tags=tags,
            description=description,
            azure={
                "ssh_public_access": ssh_public_access,
                "admin_user_ssh_public_key": admin_user_ssh_public_key,
                "vnet_resourcegroup_name": vnet_resourcegroup_name,
                "vnet_name": vnet_name,
                "subnet_name": subnet_name,
                "assigned_user_object_id": assigned_user_object_id,
                "assigned_user_tenant_id": assigned_user_tenant_id,
            },
        )

    @staticmethod
    def supported_vmsizes(workspace: Workspace, location: str | None = None) -> builtins.list[dict[str, Any]]:
        """The VM sizes that Trainmaster knows."""
        return vm_size_list(workspace)

    @property
    def status(self) -> ComputeInstanceStatus:
        """The result of `get_status()`."""
        return self.get_status()

    def get_status(self) -> ComputeInstanceStatus:
        """`Running` or `Stopped`."""
        state = "Stopped" if self._option("stopped") else "Running"
        return ComputeInstanceStatus(state, self.created_on, self.modified_on)

    def start(self, wait_for_completion: bool = False, show_output: bool = False) -> None:
        """Takes runs again."""
        self._change(stopped=False)
        self._say(show_output)

    def stop(self, wait_for_completion: bool = False, show_output: bool = False) -> None:
        """Takes no more runs. Active runs continue."""
        self._change(stopped=True)
        self._say(show_output)

    def restart(self, wait_for_completion: bool = False, show_output: bool = False) -> None:
        """The same as `start`: the machine is never switched off."""
        self.start(wait_for_completion, show_output)

    def delete(self, wait_for_completion: bool = False, show_output: bool = False) -> None:
        """Removes the target from the workspace."""
        super().delete()

    def update_sso_settings(self, value: bool) -> None:
        """Recorded: Trainmaster has no sign-on."""
        self.refresh_state()
        self._change(azure={**(self._option("azure") or {}), "sso": bool(value)})

    def _say(self, show_output: bool) -> None:
        if show_output:
            print(self.get_status().state)
