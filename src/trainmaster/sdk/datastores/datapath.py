"""DataPath and DataPathComputeBinding: where data is, and how it reaches a node."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from trainmaster.job.script.data_reference import check_mode
from trainmaster.job.script.store_paths import compute_path, store_path
from trainmaster.sdk.datastores.reference import DataReference

if TYPE_CHECKING:
    from trainmaster.sdk.datastores.datastore import Datastore


class DataPath:
    """A path of a datastore, without the way a run reaches it."""

    def __init__(
        self,
        datastore: Datastore | None = None,
        path_on_datastore: str | os.PathLike[str] | None = None,
        name: str | None = None,
    ) -> None:
        self.datastore = datastore
        self.name = name
        self._path = store_path(path_on_datastore)

    @staticmethod
    def create_from_data_reference(data_reference: DataReference) -> DataPath:
        """The path of `data_reference`."""
        return DataPath(data_reference.datastore, data_reference.path_on_datastore, data_reference.data_reference_name)

    @property
    def datastore_name(self) -> str | None:
        """The datastore's name."""
        return self.datastore.name if self.datastore else None

    @property
    def path_on_datastore(self) -> str:
        """The path, relative to the root of the datastore."""
        return self._path

    def create_data_reference(
        self,
        data_reference_name: str | None = None,
        datapath_compute_binding: DataPathComputeBinding | None = None,
    ) -> DataReference:
        """A reference to this path, reached as `datapath_compute_binding` says."""
        return DataReference.create(data_reference_name or self.name, self, datapath_compute_binding)


class DataPathComputeBinding:
    """The way a run reaches data, without the data."""

    def __init__(
        self,
        mode: str = "mount",
        path_on_compute: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
    ) -> None:
        self.mode = check_mode(mode)
        self.path_on_compute = compute_path(path_on_compute) or None
        self.overwrite = bool(overwrite)

    @staticmethod
    def create_from_data_reference(data_reference: DataReference) -> DataPathComputeBinding:
        """The way a run reaches `data_reference`."""
        return DataPathComputeBinding(data_reference.mode, data_reference.path_on_compute, data_reference.overwrite)

    def create_data_reference(
        self, data_reference_name: str | None = None, datapath: DataPath | None = None
    ) -> DataReference:
        """A reference to `datapath`, reached in this way."""
        return DataReference.create(data_reference_name or (datapath.name if datapath else None), datapath, self)
