"""`azureml.core.datastore` inside a job."""

from trainmaster.runtime.datastore import Datastore

__all__ = ["Datastore"]
