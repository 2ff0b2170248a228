"""Shows `azureml.core.compute.batchai` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.compute.clusters import BatchAiCompute as BatchAiCompute
