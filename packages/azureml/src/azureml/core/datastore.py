"""Shows `azureml.core.datastore` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.datastores.datastore import Datastore as Datastore
