"""LocalCompute: nodes of this machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainmaster.job.errors import ComputeTargetException
from trainmaster.sdk.compute.configurations import ComputeTargetProvisioningConfiguration
from trainmaster.sdk.compute.status import Occupancy
from trainmaster.sdk.compute.target import ComputeTarget
from trainmaster.shared.records import TargetRecord

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace


@dataclass
class LocalConfiguration(ComputeTargetProvisioningConfiguration):
    """The size of a target on this machine."""

    kind = "LocalCompute"
    nodes: int = 1
    cpus_per_node: int | None = None
    gpus_per_node: int | None = None

    def record(self, name: str, workspace: Workspace) -> TargetRecord:
        """The target; what is not given is an equal share of the machine."""
        cpus, gpus = self.cpus_per_node, self.gpus_per_node
        if cpus is None or gpus is None:
            machine = workspace.backend.machine()
            cpus = max(1, machine.cpus // self.nodes) if cpus is None else cpus
            gpus = machine.gpus // self.nodes if gpus is None else gpus
        return TargetRecord(name, self.engine, self.nodes, cpus, gpus)


class LocalCompute(ComputeTarget):
    """Nodes of this machine: groups of processes, each with its share of CPUs and GPUs."""

    @staticmethod
    def configuration(
        nodes: int = 1, cpus_per_node: int | None = None, gpus_per_node: int | None = None
    ) -> LocalConfiguration:
        """The size of a target. By default, the nodes share this machine's CPUs and GPUs equally."""
        for name, value in (
            ("nodes", nodes),
            ("cpus_per_node", cpus_per_node),
            ("gpus_per_node", gpus_per_node),
        ):
            least = 0 if name == "gpus_per_node" else 1
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < least):
                raise ComputeTargetException(f"{name} must be a whole number of at least {least}, not {value!r}")
        return LocalConfiguration(nodes=nodes, cpus_per_node=cpus_per_node, gpus_per_node=gpus_per_node)

    def get_status(self) -> Occupancy:
        """How many nodes it has, and how many are busy."""
        return self.occupancy()
