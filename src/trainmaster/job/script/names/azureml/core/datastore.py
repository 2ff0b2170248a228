"""`azureml.core.datastore` inside a job."""

from trainmaster.job.script.datastore import Datastore

__all__ = ["Datastore"]
