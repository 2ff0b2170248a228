"""Shows `azureml.core.compute.aks` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.v1.azure_targets import AksCompute as AksCompute
from trainmaster.sdk.v1.azure_targets import AksProvisioningConfiguration as AksProvisioningConfiguration
