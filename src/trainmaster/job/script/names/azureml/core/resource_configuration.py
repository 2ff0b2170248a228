"""`azureml.core.resource_configuration` inside a job."""

from trainmaster.job.script.resource_configuration import ResourceConfiguration

__all__ = ["ResourceConfiguration"]
