"""Shows `azureml.core.resource_configuration` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.job.script.resource_configuration import ResourceConfiguration as ResourceConfiguration
