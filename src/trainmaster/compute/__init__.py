"""Compute targets: named places with nodes of a given size. The classes have v1's names; see docs/compute.md."""

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
from trainmaster.compute.status import AmlComputeStatus, ScaleSettings
from trainmaster.compute.target import ComputeTarget
from trainmaster.errors import ComputeTargetException

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
]
