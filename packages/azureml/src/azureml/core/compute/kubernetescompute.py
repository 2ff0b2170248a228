"""Shows `azureml.core.compute.kubernetescompute` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.compute.kubernetes import KubernetesCompute as KubernetesCompute
