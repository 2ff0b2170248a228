"""What a pod requests for a `vm_size`: the part of such a machine that Kubernetes leaves to pods. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.quantities import show_cpus
from trainmaster.shared.spelling import guess
from trainmaster.shared.vm_sizes import VmSize, VmSizes


@dataclass(frozen=True)
class PodSize:
    """What one pod of a vm_size requests."""

    cpus: str
    memory: str
    gpus: int


def pod_size(size: VmSize) -> PodSize:
    """What a pod requests that is to have a machine of this size for itself.

    A cluster keeps a part of each machine for its own programs, so a pod that requested all of it would wait for ever.
    This leaves out a twentieth of the CPUs (at least a quarter of one), and of the memory 3 GiB and 6 %, but no more
    than 30 %.

    >>> pod_size(VmSize("STANDARD_NC6", 6, 1, 56.0))
    PodSize(cpus='5700m', memory='50831Mi', gpus=1)
    >>> pod_size(VmSize("STANDARD_D2_V2", 2, 0, 7.0)).memory
    '5017Mi'
    """
    millis = size.vcpus * 1000 - max(250, size.vcpus * 50)
    kept = min(0.3 * size.memory_gb, 3 + 0.06 * size.memory_gb)
    return PodSize(show_cpus(millis), f"{int((size.memory_gb - kept) * 1024)}Mi", size.gpus)


def find_pod_size(sizes: VmSizes, name: str) -> PodSize:
    """The size of a pod by the name of a vm_size."""
    size = sizes.find(name)
    if size is None:
        raise ComputeTargetException(
            f"vm_size '{name}' is not in the table of sizes",
            hint=f"{guess(name.upper(), sizes.sizes)}'trainmaster compute sizes' shows the table. Or give "
            "cpus_per_node, memory_per_node and gpus_per_node.",
        )
    return pod_size(size)
