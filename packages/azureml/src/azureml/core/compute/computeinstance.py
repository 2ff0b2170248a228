"""Shows `azureml.core.compute.computeinstance` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.compute.status import ComputeInstanceStatus as ComputeInstanceStatus
from trainmaster.sdk.v1.compute_instance import ComputeInstance as ComputeInstance
