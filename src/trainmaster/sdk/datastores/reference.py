"""DataReference: a path of a datastore, and how a run reaches it."""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING

from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.datastores.configuration import DataReferenceConfiguration
from trainmaster.shared.job_spec import DataBinding, DataMode
from trainmaster.storage.modes import checked_mode
from trainmaster.storage.paths import checked_name, compute_path, join, store_path

if TYPE_CHECKING:
    from trainmaster.sdk.datastores.datapath import DataPath, DataPathComputeBinding
    from trainmaster.sdk.datastores.datastore import Datastore

PathText = str | os.PathLike[str]


class DataReference:
    """A file or folder of a datastore, to be mounted, downloaded or uploaded by a run.

    As an argument of a script it stands for the path the script will see:

        est = Estimator('./project', entry_script='train.py', compute_target='local',
                        script_params={'--data': store.path('mnist').as_mount()})
    """

    def __init__(
        self,
        datastore: Datastore,
        data_reference_name: str | None = None,
        path_on_datastore: PathText | None = None,
        mode: str = "mount",
        path_on_compute: PathText | None = None,
        overwrite: bool = False,
    ) -> None:
        if not hasattr(datastore, "as_mount"):
            raise UserErrorException(f"A data reference needs a datastore, not {type(datastore).__name__}")
        self.datastore = datastore
        self.path_on_datastore = store_path(path_on_datastore)
        self.mode: DataMode = checked_mode(mode)
        self.path_on_compute = compute_path(path_on_compute) or None
        self.overwrite = bool(overwrite)
        # A sub path gets a fresh name, so that two paths of one store can be in the same run.
        default = uuid.uuid4().hex if self.path_on_datastore else datastore.name
        self.data_reference_name = checked_name(data_reference_name or default, "data reference")

    @staticmethod
    def create(
        data_reference_name: str | None = None,
        datapath: DataPath | None = None,
        datapath_compute_binding: DataPathComputeBinding | None = None,
    ) -> DataReference:
        """The reference to `datapath`, reached as `datapath_compute_binding` says (none: mounted)."""
        if datapath is None or datapath.datastore is None:
            raise UserErrorException("DataReference.create needs a datapath with a datastore")
        whole = DataReference(datapath.datastore, data_reference_name, datapath.path_on_datastore)
        if datapath_compute_binding is None:
            return whole
        binding = datapath_compute_binding
        return whole._in_mode(binding.mode, binding.path_on_compute, binding.overwrite)

    def path(self, path: PathText | None = None, data_reference_name: str | None = None) -> DataReference:
        """The reference to `path` below this one, reached in the same way."""
        return DataReference(
            self.datastore,
            data_reference_name,
            join(self.path_on_datastore, store_path(path)),
            self.mode,
            self.path_on_compute,
            self.overwrite,
        )

    def as_mount(self) -> DataReference:
        """The same reference, seen where it lies."""
        return self._in_mode("mount", None, False)

    def as_download(self, path_on_compute: PathText | None = None, overwrite: bool = False) -> DataReference:
        """The same reference, copied to the node before the script starts."""
        return self._in_mode("download", path_on_compute, overwrite)

    def as_upload(self, path_on_compute: PathText | None = None, overwrite: bool = False) -> DataReference:
        """The same reference, filled after the script ended with what it wrote at `path_on_compute`."""
        return self._in_mode("upload", path_on_compute, overwrite)

    def to_config(self) -> DataReferenceConfiguration:
        """The form that `RunConfiguration.data_references` holds."""
        return DataReferenceConfiguration(
            self.datastore.name,
            self.mode,
            self.path_on_datastore or None,
            self.path_on_compute,
            self.overwrite,
        )

    def to_binding(self) -> DataBinding:
        """The form that a job specification holds."""
        return self.to_config().to_binding(self.data_reference_name)

    def _in_mode(self, mode: str, path_on_compute: PathText | None, overwrite: bool) -> DataReference:
        return DataReference(
            self.datastore,
            self.data_reference_name,
            self.path_on_datastore,
            mode,
            path_on_compute or self.path_on_compute,
            overwrite or self.overwrite,
        )

    def __str__(self) -> str:
        return f"$AZUREML_DATAREFERENCE_{self.data_reference_name}"

    # Notebooks print argument lists, where people look for the text the script gets.
    __repr__ = __str__
