"""LocalCompute: nodes of this machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainmaster.job.errors import ComputeTargetException
from trainmaster.sdk.compute.configurations import ComputeTargetProvisioningConfiguration
from trainmaster.sdk.compute.status import Occupancy
from trainmaster.sdk.compute.target import ComputeTarget
from trainmaster.shared.byte_sizes import parse_size
from trainmaster.shared.node_limits import LIMIT_CPUS, MEMORY_PER_NODE, check_limits
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
    memory_per_node: int | None = None
    """Bytes."""
    limit_cpus: bool = False

    def record(self, name: str, workspace: Workspace) -> TargetRecord:
        """The target; what is not given is an equal share of the machine."""
        cpus, gpus = self.cpus_per_node, self.gpus_per_node
        if cpus is None or gpus is None:
            machine = workspace.backend.machine()
            cpus = max(1, machine.cpus // self.nodes) if cpus is None else cpus
            gpus = machine.gpus // self.nodes if gpus is None else gpus
        limits = {MEMORY_PER_NODE: self.memory_per_node} if self.memory_per_node is not None else {}
        options = {**limits, **({LIMIT_CPUS: True} if self.limit_cpus else {})}
        return TargetRecord(name, self.engine, self.nodes, cpus, gpus, options)


class LocalCompute(ComputeTarget):
    """Nodes of this machine: groups of processes, each with its share of CPUs and GPUs."""

    @staticmethod
    def configuration(
        nodes: int = 1,
        cpus_per_node: int | None = None,
        gpus_per_node: int | None = None,
        memory_per_node: int | str | None = None,
        limit_cpus: bool = False,
    ) -> LocalConfiguration:
        """The size of a target. By default, the nodes share this machine's CPUs and GPUs equally.

        The processes of a node are held to `memory_per_node` (bytes, or a text such as "8GB"), and with `limit_cpus` to
        its CPUs. Without them, the kernel shares CPUs and memory among all runs.
        """
        for name, value in (
            ("nodes", nodes),
            ("cpus_per_node", cpus_per_node),
            ("gpus_per_node", gpus_per_node),
        ):
            least = 0 if name == "gpus_per_node" else 1
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < least):
                raise ComputeTargetException(f"{name} must be a whole number of at least {least}, not {value!r}")
        if not isinstance(limit_cpus, bool):
            raise ComputeTargetException(f"limit_cpus must be True or False, not {limit_cpus!r}")
        memory = parse_size(memory_per_node) if isinstance(memory_per_node, str) else memory_per_node
        if isinstance(memory_per_node, str) and memory is None:
            raise ComputeTargetException(
                f"memory_per_node {memory_per_node!r} cannot be read as a size", hint="Write '8GB' or '500MB'."
            )
        check_limits({MEMORY_PER_NODE: memory})
        return LocalConfiguration(nodes, cpus_per_node, gpus_per_node, memory, limit_cpus)

    def get_status(self) -> Occupancy:
        """How many nodes it has, and how many are busy."""
        return self.occupancy()
