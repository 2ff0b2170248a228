"""Shows `azureml.core.compute.aks` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.compute.attached import AksCompute as AksCompute
from trainmaster.sdk.compute.attached import AksProvisioningConfiguration as AksProvisioningConfiguration
