"""Shows `azureml.data.azure_storage_datastore` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.datastores.azure_datastores import AbstractAzureStorageDatastore as AbstractAzureStorageDatastore
from trainmaster.sdk.datastores.azure_datastores import AzureBlobDatastore as AzureBlobDatastore
from trainmaster.sdk.datastores.azure_datastores import AzureFileDatastore as AzureFileDatastore
