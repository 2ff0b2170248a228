"""Named storages, and the ways a run reaches into them: mount, download, upload."""

from trainmaster.datastores.azure_datastores import (
    AbstractAzureStorageDatastore,
    AzureBlobDatastore,
    AzureFileDatastore,
)
from trainmaster.datastores.configuration import DataReferenceConfiguration
from trainmaster.datastores.datapath import DataPath, DataPathComputeBinding
from trainmaster.datastores.datastore import Datastore
from trainmaster.datastores.reference import DataReference

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
