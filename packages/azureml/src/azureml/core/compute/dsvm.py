"""Shows `azureml.core.compute.dsvm` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.compute.attached import DsvmCompute as DsvmCompute
