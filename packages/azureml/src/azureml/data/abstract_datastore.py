"""Shows `azureml.data.abstract_datastore` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.datastores import AbstractDatastore as AbstractDatastore
