"""Shows `azureml.core.compute.dsvm` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.v1.azure_targets import DsvmCompute as DsvmCompute
