"""Compute targets: named places with nodes of a given size. The classes have v1's names; see docs/compute.md.

Each name is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainmaster.compute.attached import (
        AksCompute,
        DsvmCompute,
        HDInsightCompute,
        KubernetesCompute,
        RemoteCompute,
    )
    from trainmaster.compute.clusters import AmlCompute, BatchAiCompute
    from trainmaster.compute.configurations import (
        ComputeTargetAttachConfiguration,
        ComputeTargetProvisioningConfiguration,
    )
    from trainmaster.compute.instance import ComputeInstance
    from trainmaster.compute.local import LocalCompute, LocalConfiguration
    from trainmaster.compute.slurm import SlurmCompute, SlurmConfiguration
    from trainmaster.compute.ssh import SshCompute, SshConfiguration
    from trainmaster.compute.status import AmlComputeStatus, ScaleSettings
    from trainmaster.compute.target import ComputeTarget
    from trainmaster.errors import ComputeTargetException

_HOMES = {
    "AksCompute": "trainmaster.compute.attached",
    "AmlCompute": "trainmaster.compute.clusters",
    "AmlComputeStatus": "trainmaster.compute.status",
    "BatchAiCompute": "trainmaster.compute.clusters",
    "ComputeInstance": "trainmaster.compute.instance",
    "ComputeTarget": "trainmaster.compute.target",
    "ComputeTargetAttachConfiguration": "trainmaster.compute.configurations",
    "ComputeTargetException": "trainmaster.errors",
    "ComputeTargetProvisioningConfiguration": "trainmaster.compute.configurations",
    "DsvmCompute": "trainmaster.compute.attached",
    "HDInsightCompute": "trainmaster.compute.attached",
    "KubernetesCompute": "trainmaster.compute.attached",
    "LocalCompute": "trainmaster.compute.local",
    "LocalConfiguration": "trainmaster.compute.local",
    "RemoteCompute": "trainmaster.compute.attached",
    "ScaleSettings": "trainmaster.compute.status",
    "SshCompute": "trainmaster.compute.ssh",
    "SshConfiguration": "trainmaster.compute.ssh",
    "SlurmCompute": "trainmaster.compute.slurm",
    "SlurmConfiguration": "trainmaster.compute.slurm",
}

__all__ = [
    "AksCompute",
    "AmlCompute",
    "AmlComputeStatus",
    "BatchAiCompute",
    "ComputeInstance",
    "ComputeTarget",
    "ComputeTargetAttachConfiguration",
    "ComputeTargetException",
    "ComputeTargetProvisioningConfiguration",
    "DsvmCompute",
    "HDInsightCompute",
    "KubernetesCompute",
    "LocalCompute",
    "LocalConfiguration",
    "RemoteCompute",
    "ScaleSettings",
    "SlurmCompute",
    "SlurmConfiguration",
    "SshCompute",
    "SshConfiguration",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value
