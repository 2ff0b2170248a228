"""`Datastore` inside a job: the class of the full Trainmaster if it is installed, else the job's own."""

from trainmaster.job.script.datastores import datastore_class

Datastore = datastore_class()

__all__ = ["Datastore"]
