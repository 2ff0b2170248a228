"""Shows `azureml.core.compute.computeinstance` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.compute.instance import ComputeInstance as ComputeInstance
from trainmaster.sdk.compute.status import ComputeInstanceStatus as ComputeInstanceStatus
