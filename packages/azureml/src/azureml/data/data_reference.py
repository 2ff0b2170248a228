"""Shows `azureml.data.data_reference` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.datastores.reference import DataReference as DataReference
