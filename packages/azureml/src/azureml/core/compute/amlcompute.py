"""Shows `azureml.core.compute.amlcompute` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.compute.clusters import AmlCompute as AmlCompute
from trainmaster.sdk.compute.status import AmlComputeStatus as AmlComputeStatus
from trainmaster.sdk.compute.status import ScaleSettings as ScaleSettings
