"""`azureml.core.resource_configuration` inside a job."""

from trainmaster.runtime.resource_configuration import ResourceConfiguration

__all__ = ["ResourceConfiguration"]
