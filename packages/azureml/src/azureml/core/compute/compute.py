"""Shows `azureml.core.compute.compute` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.compute.configurations import ComputeTargetAttachConfiguration as ComputeTargetAttachConfiguration
from trainmaster.sdk.compute.configurations import ComputeTargetProvisioningConfiguration as ComputeTargetProvisioningConfiguration
from trainmaster.sdk.compute.target import ComputeTarget as ComputeTarget
