"""Shows `azureml.core.compute_target` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.job.errors import ComputeTargetException as ComputeTargetException
from trainmaster.sdk.compute.target import ComputeTarget as ComputeTarget
