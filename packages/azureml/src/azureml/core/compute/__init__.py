"""Shows `azureml.core.compute` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.compute.clusters import AmlCompute as AmlCompute
from trainmaster.sdk.compute.kubernetes import KubernetesCompute as KubernetesCompute
from trainmaster.sdk.compute.remote import RemoteCompute as RemoteCompute
from trainmaster.sdk.compute.target import ComputeTarget as ComputeTarget
from trainmaster.sdk.v1.azure_targets import AksCompute as AksCompute
from trainmaster.sdk.v1.azure_targets import BatchAiCompute as BatchAiCompute
from trainmaster.sdk.v1.azure_targets import DsvmCompute as DsvmCompute
from trainmaster.sdk.v1.azure_targets import HDInsightCompute as HDInsightCompute
from trainmaster.sdk.v1.compute_instance import ComputeInstance as ComputeInstance
