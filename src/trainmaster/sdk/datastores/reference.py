"""DataReference: a path of a datastore, and how a run reaches it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainmaster.job.errors import UserErrorException
from trainmaster.job.script.data_reference import PathReference
from trainmaster.sdk.datastores.configuration import DataReferenceConfiguration
from trainmaster.shared.job_spec import DataBinding

if TYPE_CHECKING:
    from trainmaster.sdk.datastores.datapath import DataPath, DataPathComputeBinding


class DataReference(PathReference):
    """A file or folder of a datastore, to be mounted, downloaded or uploaded by a run.

    As an argument of a script it stands for the path that the script will see:

        est = Estimator('./project', entry_script='train.py', compute_target='local',
                        script_params={'--data': store.path('mnist').as_mount()})
    """

    @staticmethod
    def create(
        data_reference_name: str | None = None,
        datapath: DataPath | None = None,
        datapath_compute_binding: DataPathComputeBinding | None = None,
    ) -> DataReference:
        """The reference to `datapath`, reached as `datapath_compute_binding` says (None: mounted)."""
        if datapath is None or datapath.datastore is None:
            raise UserErrorException("DataReference.create needs a datapath with a datastore")
        whole = DataReference(datapath.datastore, data_reference_name, datapath.path_on_datastore)
        if datapath_compute_binding is None:
            return whole
        binding = datapath_compute_binding
        return whole._with_mode(binding.mode, binding.path_on_compute, binding.overwrite)

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
