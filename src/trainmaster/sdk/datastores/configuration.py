"""DataReferenceConfiguration: a data reference as run configurations hold it."""

from __future__ import annotations

from dataclasses import dataclass

from trainmaster.job.script.data_reference import check_mode
from trainmaster.job.script.store_paths import compute_path, store_path
from trainmaster.shared.job_spec import DataBinding, DataMode


@dataclass
class DataReferenceConfiguration:
    """A path of a datastore and how a run reaches it; not frozen, because scripts set its attributes one by one."""

    datastore_name: str | None = None
    mode: DataMode = "mount"
    path_on_datastore: str | None = None
    path_on_compute: str | None = None
    overwrite: bool = False

    def to_binding(self, name: str) -> DataBinding:
        """The binding of a job that sees this data as `$AZUREML_DATAREFERENCE_<name>`."""
        return DataBinding(
            name=name,
            datastore=self.datastore_name or "",
            path=store_path(self.path_on_datastore),
            mode=check_mode(self.mode),
            path_on_compute=compute_path(self.path_on_compute),
            overwrite=self.overwrite,
        )
