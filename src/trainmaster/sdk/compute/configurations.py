"""Descriptions of targets to create or attach. They are checked when they are made, and recorded when they are used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.notices import warn
from trainmaster.shared.records import TargetRecord
from trainmaster.shared.vm_sizes import Grant

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace

_PRIORITIES = ("dedicated", "lowpriority")


@dataclass
class Configuration:
    """A description of a target: its class, and what is recorded of it."""

    kind: ClassVar[str] = ""
    """The class of the target."""
    engine: ClassVar[str] = "local"

    def record(self, name: str, workspace: Workspace) -> TargetRecord:
        """The record of the target that this describes, by this name."""
        raise NotImplementedError

    def validate_configuration(self) -> None:
        """Refuses values that no target can have."""

    def keep_secrets(self, workspace: Workspace, name: str) -> None:
        """Puts passwords, which the target's record must not show, into the keyvault."""


@dataclass
class ComputeTargetProvisioningConfiguration(Configuration):
    """For `ComputeTarget.create`."""


@dataclass
class ComputeTargetAttachConfiguration(Configuration):
    """For `ComputeTarget.attach`."""


@dataclass
class MachineConfiguration(ComputeTargetProvisioningConfiguration):
    """Nodes of this machine, as close to `vm_size` as the machine allows."""

    vm_size: str = ""
    tags: Mapping[str, str] | None = None
    description: str | None = None
    location: str | None = None
    azure: dict[str, Any] = field(default_factory=dict)
    """Parameters that only have a meaning in Azure. They are recorded and have no effect."""

    def __post_init__(self) -> None:
        self.validate_configuration()

    @property
    def nodes(self) -> int:
        """How many nodes the target has."""
        return 1

    def validate_configuration(self) -> None:
        if not isinstance(self.vm_size, str | None):
            raise ComputeTargetException(
                f"vm_size must be a text, not {self.vm_size!r}", hint="Write 'STANDARD_D2', for example."
            )
        if self.tags is not None and not isinstance(self.tags, Mapping):
            raise ComputeTargetException(f"tags must be a dict, not {type(self.tags).__name__}")
        _check_network(self.azure)

    def record(self, name: str, workspace: Workspace) -> TargetRecord:
        self.validate_configuration()
        granted = self._grant(workspace)
        for doubt in granted.doubts:
            warn(f"target '{name}': {doubt}")
        return TargetRecord(
            name=name,
            engine=self.engine,
            nodes=self.nodes,
            cpus_per_node=granted.cpus_per_node,
            gpus_per_node=granted.gpus_per_node,
            options={
                "class": self.kind,
                "vm_size": self.vm_size or "",
                "tags": dict(self.tags or {}),
                "description": self.description or "",
                "location": self.location or "",
                **self.settings(),
                "azure": describe_azure_settings(self.azure),
                "doubts": list(granted.doubts),
            },
        )

    def settings(self) -> dict[str, Any]:
        """Further options that this kind of target records."""
        return {}

    def _grant(self, workspace: Workspace) -> Grant:
        return workspace.backend.machine().grant(self.vm_size or "", self.nodes)


@dataclass
class ClusterConfiguration(MachineConfiguration):
    """A cluster of up to `max_nodes` nodes."""

    kind = "AmlCompute"
    vm_priority: str = "dedicated"
    min_nodes: int = 0
    max_nodes: int | None = None
    idle_seconds_before_scaledown: int | str | None = 1800

    @property
    def nodes(self) -> int:
        return int(self.max_nodes or 0)

    def validate_configuration(self) -> None:
        super().validate_configuration()
        self.min_nodes = 0 if self.min_nodes is None else self.min_nodes
        check_scale(self.min_nodes, self.max_nodes)
        idle_seconds(self.idle_seconds_before_scaledown)
        if self.vm_priority is not None and str(self.vm_priority).lower() not in _PRIORITIES:
            raise ComputeTargetException(
                f"vm_priority {self.vm_priority!r} is not known", hint=f"Use {' or '.join(map(repr, _PRIORITIES))}."
            )

    def settings(self) -> dict[str, Any]:
        return {
            "vm_priority": self.vm_priority or "dedicated",
            "min_nodes": self.min_nodes,
            "idle_seconds": idle_seconds(self.idle_seconds_before_scaledown),
        }


def check_scale(least: Any, most: Any) -> None:
    """Refuses limits that allow no number of nodes."""
    if most is None:
        raise ComputeTargetException(
            "max_nodes is missing", hint="Give the greatest number of nodes, such as max_nodes=4."
        )
    for name, value in (("min_nodes", least), ("max_nodes", most)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise ComputeTargetException(f"{name} must be a whole number of at least 0, not {value!r}")
    if least > most:
        raise ComputeTargetException(f"min_nodes={least} is more than max_nodes={most}")


def idle_seconds(value: Any) -> int:
    """The seconds before scaling down, also given as a text. They are recorded: nothing is ever switched off."""
    try:
        seconds = 1800 if value is None else int(value)
    except (TypeError, ValueError):
        seconds = -1
    if isinstance(value, bool) or seconds < 0:
        raise ComputeTargetException(f"idle_seconds_before_scaledown must be a number of seconds, not {value!r}")
    return seconds


def describe_azure_settings(azure: Mapping[str, Any]) -> dict[str, Any]:
    """What is recorded of parameters that only have a meaning in Azure: those that were given, without passwords."""
    kept = {name: value for name, value in azure.items() if value is not None}
    return {name: "(not kept)" if "password" in name else _plain(value) for name, value in kept.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value)


def _check_network(azure: Mapping[str, Any]) -> None:
    if azure.get("admin_username") and not (azure.get("admin_user_password") or azure.get("admin_user_ssh_key")):
        raise ComputeTargetException(
            "admin_username needs admin_user_password or admin_user_ssh_key",
            hint="Give one of the two, or leave out all three.",
        )
    network = [azure.get(name) for name in ("vnet_resourcegroup_name", "vnet_name", "subnet_name")]
    if any(network) and not all(network):
        raise ComputeTargetException(
            "vnet_resourcegroup_name, vnet_name and subnet_name belong together", hint="Give all three, or none."
        )
