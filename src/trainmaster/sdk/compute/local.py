"""LocalCompute: nodes of this machine."""

from __future__ import annotations

from dataclasses import dataclass

from trainmaster.job.errors import ComputeTargetException
from trainmaster.sdk.compute.configurations import ComputeTargetProvisioningConfiguration
from trainmaster.sdk.compute.status import Occupancy
from trainmaster.sdk.compute.target import ComputeTarget
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.hardware import cpus, gpus
from trainmaster.shared.records import TargetRecord


@dataclass
class LocalConfiguration(ComputeTargetProvisioningConfiguration):
    """The size of a target on this machine."""

    kind = "LocalCompute"
    nodes: int = 1
    cpus_per_node: int = 1
    gpus_per_node: int = 0

    def record(self, name: str, workspace: WorkspaceFolder) -> TargetRecord:
        return TargetRecord(name, self.engine, self.nodes, self.cpus_per_node, self.gpus_per_node)


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
        return LocalConfiguration(
            nodes=nodes,
            cpus_per_node=max(1, cpus() // nodes) if cpus_per_node is None else cpus_per_node,
            gpus_per_node=len(gpus()) // nodes if gpus_per_node is None else gpus_per_node,
        )

    def get_status(self) -> Occupancy:
        """How many nodes it has, and how many are busy."""
        return self.occupancy()
