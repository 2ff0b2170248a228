"""`Datastore` inside a job: that of the full Trainmaster where it is installed, else the job's own."""

from trainmaster.job.script.datastores import datastore_class

Datastore = datastore_class()

__all__ = ["Datastore"]
