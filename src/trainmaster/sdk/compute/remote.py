"""RemoteCompute: a machine that exists already, over SSH."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import ComputeTargetException
from trainmaster.sdk.compute.configurations import ComputeTargetAttachConfiguration, describe_azure_settings
from trainmaster.sdk.compute.target import ComputeTarget
from trainmaster.shared.machine import Machine
from trainmaster.shared.notices import warn
from trainmaster.shared.records import TargetRecord

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace

_HERE = ("localhost", "127.0.0.1", "::1")
_NEEDS = "Write attach_configuration(username=..., address=..., private_key_file=...)."


@dataclass
class RemoteConfiguration(ComputeTargetAttachConfiguration):
    """A machine reached over SSH."""

    kind = "RemoteCompute"
    username: str = ""
    address: str = ""
    ssh_port: int = 22
    private_key_file: str = ""
    config_file: str = ""
    """An SSH configuration file to use instead of ~/.ssh/config."""
    secret: str = field(default="", repr=False)
    """The password, or the passphrase of the key."""
    azure: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.validate_configuration()

    def validate_configuration(self) -> None:
        if not isinstance(self.username, str) or not self.username.strip():
            raise ComputeTargetException("username is missing", hint=_NEEDS)
        if not isinstance(self.address, str) or not self.address.strip():
            raise ComputeTargetException("the address of the machine is missing", hint=_NEEDS)
        port = int(self.ssh_port) if str(self.ssh_port).isdecimal() else 0
        if not 0 < port < 65536:
            raise ComputeTargetException(f"ssh_port must be a number from 1 to 65535, not {self.ssh_port!r}")
        self.ssh_port = port
        key = self.private_key_file
        if key and not os.path.isfile(os.path.expanduser(key)):
            raise ComputeTargetException(f"the private key file {key} does not exist", hint="Check private_key_file.")

    @property
    def is_here(self) -> bool:
        """Whether it is this machine."""
        return self.address.strip().lower() in _HERE

    def record(self, name: str, workspace: Workspace) -> TargetRecord:
        self.validate_configuration()
        key = self.private_key_file
        machine = workspace.backend.machine() if self.is_here else Machine(cpus=1, gpus=0)
        record = TargetRecord(
            name=name,
            engine="local" if self.is_here else "ssh",
            nodes=1,
            cpus_per_node=machine.cpus,
            gpus_per_node=machine.gpus,
            options={
                "class": self.kind,
                "username": self.username,
                "address": self.address.strip(),
                "ssh_port": self.ssh_port,
                "private_key_file": os.path.abspath(os.path.expanduser(key)) if key else "",
                "config_file": self.config_file,
                "authentication": "key" if key else "password" if self.secret else "agent",
                "secret": secret_name(name) if self.secret and not self.is_here else "",
                "azure": describe_azure_settings(self.azure),
            },
        )
        return record if self.is_here else self._add_facts(record, workspace)

    def _add_facts(self, record: TargetRecord, workspace: Workspace) -> TargetRecord:
        """Adds the CPUs and GPUs of the machine. A machine that cannot be reached now may be up when a run needs it."""
        from trainmaster.sdk.compute.ssh import look

        try:
            (found,) = look(record, workspace, self.secret)
        except ComputeTargetException as error:
            warn(f"target '{record.name}': {error.message}")
            return record
        return replace(record, cpus_per_node=found.cpus, gpus_per_node=found.gpus)

    def keep_secrets(self, workspace: Workspace, name: str) -> None:
        if self.secret and not self.is_here:
            workspace.get_default_keyvault().set_secret(secret_name(name), self.secret)


def secret_name(target: str) -> str:
    """The name of a target's password in the keyvault."""
    return f"ssh-{target}"


class RemoteCompute(ComputeTarget):
    """A machine of yours, by its SSH address. `SshCompute` is for several machines; see docs/guide/ssh.md.

    A password or a passphrase is kept in the workspace's keyvault as `ssh-<name of the target>`.
    """

    _type = "VirtualMachine"

    @staticmethod
    def attach(  # type: ignore[override]  # v1's old way beside the new one
        workspace: Workspace,
        name: str,
        username: Any = None,
        address: str = "",
        ssh_port: int = 22,
        password: str = "",
        private_key_file: str = "",
        private_key_passphrase: str = "",
        attach_configuration: ComputeTargetAttachConfiguration | None = None,
    ) -> ComputeTarget:
        """Attaches a machine, described by the parameters or by `attach_configuration`."""
        if isinstance(username, ComputeTargetAttachConfiguration):
            attach_configuration = username
        configuration = attach_configuration or RemoteCompute.attach_configuration(
            username,
            address=address,
            ssh_port=ssh_port,
            password=password,
            private_key_file=private_key_file,
            private_key_passphrase=private_key_passphrase,
        )
        return ComputeTarget.attach(workspace, name, configuration)

    @staticmethod
    def attach_configuration(
        username: str,
        subscription_id: str | None = None,
        resource_group: str | None = None,
        vm_name: str | None = None,
        resource_id: str | None = None,
        address: str | None = None,
        ssh_port: int = 22,
        password: str = "",
        private_key_file: str = "",
        private_key_passphrase: str = "",
    ) -> RemoteConfiguration:
        """A machine by its SSH address. One that is only named as an Azure resource has no address, and is refused."""
        return RemoteConfiguration(
            username=username,
            address=address or vm_name or "",
            ssh_port=ssh_port,
            private_key_file=private_key_file,
            secret=password or private_key_passphrase or "",
            azure={
                "subscription_id": subscription_id,
                "resource_group": resource_group,
                "vm_name": vm_name,
                "resource_id": resource_id,
            },
        )

    @property
    def address(self) -> str:
        """The address of the target."""
        return str(self._option("address") or "")

    @property
    def ssh_port(self) -> int:
        """The SSH port of the target."""
        return int(self._option("ssh_port") or 22)

    @property
    def username(self) -> str:
        """The user who logs in."""
        return str(self._option("username") or "")

    def get_credentials(self) -> dict[str, Any]:
        """The login, without the password, which stays in the keyvault."""
        return {
            "username": self.username,
            "password": None,
            "privateKeyData": None,
            "privateKeyFile": self._option("private_key_file") or None,
        }

    def _properties(self) -> dict[str, Any]:
        return {
            "address": self.address,
            "sshPort": self.ssh_port,
            "username": self.username,
            "authentication": self._option("authentication"),
            **(self._option("azure") or {}),
        }
