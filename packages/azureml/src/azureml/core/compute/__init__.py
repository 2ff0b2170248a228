"""Shows `azureml.core.compute` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.compute.attached import AksCompute as AksCompute
from trainmaster.sdk.compute.attached import DsvmCompute as DsvmCompute
from trainmaster.sdk.compute.attached import HDInsightCompute as HDInsightCompute
from trainmaster.sdk.compute.attached import KubernetesCompute as KubernetesCompute
from trainmaster.sdk.compute.attached import RemoteCompute as RemoteCompute
from trainmaster.sdk.compute.clusters import AmlCompute as AmlCompute
from trainmaster.sdk.compute.clusters import BatchAiCompute as BatchAiCompute
from trainmaster.sdk.compute.instance import ComputeInstance as ComputeInstance
from trainmaster.sdk.compute.target import ComputeTarget as ComputeTarget
