"""Named storages, and the ways a run reaches into them: mount, download, upload."""

from trainmaster.datastores.configuration import DataReferenceConfiguration
from trainmaster.datastores.datapath import DataPath, DataPathComputeBinding
from trainmaster.datastores.datastore import Datastore
from trainmaster.datastores.reference import DataReference

__all__ = ["DataPath", "DataPathComputeBinding", "DataReference", "DataReferenceConfiguration", "Datastore"]
