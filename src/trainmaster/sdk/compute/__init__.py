"""Compute targets: named places with nodes of a given size. The classes have v1's names; see docs/guide/compute.md.

Each name is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainmaster.job.errors import ComputeTargetException
    from trainmaster.sdk.compute.attached import (
        AksCompute,
        DsvmCompute,
        HDInsightCompute,
        KubernetesCompute,
        RemoteCompute,
    )
    from trainmaster.sdk.compute.clusters import AmlCompute, BatchAiCompute
    from trainmaster.sdk.compute.configurations import (
        ComputeTargetAttachConfiguration,
        ComputeTargetProvisioningConfiguration,
    )
    from trainmaster.sdk.compute.instance import ComputeInstance
    from trainmaster.sdk.compute.local import LocalCompute, LocalConfiguration
    from trainmaster.sdk.compute.slurm import SlurmCompute, SlurmConfiguration
    from trainmaster.sdk.compute.ssh import SshCompute, SshConfiguration
    from trainmaster.sdk.compute.status import AmlComputeStatus, ScaleSettings
    from trainmaster.sdk.compute.target import ComputeTarget

_HOMES = {
    "AksCompute": "trainmaster.sdk.compute.attached",
    "AmlCompute": "trainmaster.sdk.compute.clusters",
    "AmlComputeStatus": "trainmaster.sdk.compute.status",
    "BatchAiCompute": "trainmaster.sdk.compute.clusters",
    "ComputeInstance": "trainmaster.sdk.compute.instance",
    "ComputeTarget": "trainmaster.sdk.compute.target",
    "ComputeTargetAttachConfiguration": "trainmaster.sdk.compute.configurations",
    "ComputeTargetException": "trainmaster.job.errors",
    "ComputeTargetProvisioningConfiguration": "trainmaster.sdk.compute.configurations",
    "DsvmCompute": "trainmaster.sdk.compute.attached",
    "HDInsightCompute": "trainmaster.sdk.compute.attached",
    "KubernetesCompute": "trainmaster.sdk.compute.attached",
    "LocalCompute": "trainmaster.sdk.compute.local",
    "LocalConfiguration": "trainmaster.sdk.compute.local",
    "RemoteCompute": "trainmaster.sdk.compute.attached",
    "ScaleSettings": "trainmaster.sdk.compute.status",
    "SshCompute": "trainmaster.sdk.compute.ssh",
    "SshConfiguration": "trainmaster.sdk.compute.ssh",
    "SlurmCompute": "trainmaster.sdk.compute.slurm",
    "SlurmConfiguration": "trainmaster.sdk.compute.slurm",
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
