"""Named storages, and the ways a run reaches into them: mount, download, upload."""

from trainmaster.sdk.datastores.azure_datastores import (
    AbstractAzureStorageDatastore,
    AzureBlobDatastore,
    AzureFileDatastore,
)
from trainmaster.sdk.datastores.configuration import DataReferenceConfiguration
from trainmaster.sdk.datastores.datapath import DataPath, DataPathComputeBinding
from trainmaster.sdk.datastores.datastore import Datastore
from trainmaster.sdk.datastores.reference import DataReference

AbstractDatastore = Datastore

__all__ = [
    "AbstractAzureStorageDatastore",
    "AbstractDatastore",
    "AzureBlobDatastore",
    "AzureFileDatastore",
    "DataPath",
    "DataPathComputeBinding",
    "DataReference",
    "DataReferenceConfiguration",
    "Datastore",
]
