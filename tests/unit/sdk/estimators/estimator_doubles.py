"""Stand-ins for the datastore classes: estimators know these by what they can do, not by their type."""

from dataclasses import dataclass, replace

from trainmaster.shared.job_spec import DataBinding


@dataclass
class Reference:
    name: str = "data"
    store: str = "workspaceblobstore"
    path: str = "mnist"
    mode: str = "mount"

    def to_binding(self):
        return DataBinding(name=self.name, datastore=self.store, path=self.path, mode=self.mode)

    def as_download(self):
        return replace(self, mode="download")


@dataclass
class Store:
    name: str = "workspaceblobstore"

    def as_mount(self):
        return Reference(self.name, self.name, "")

    def to_binding(self):
        return self.as_mount().to_binding()


@dataclass
class Path:
    path_on_datastore: str = "checkpoints"

    def create_data_reference(self, data_reference_name=None, datapath_compute_binding=None):
        return Reference(name=data_reference_name or "path", path=self.path_on_datastore)


class Dataset:
    def as_named_input(self, name):
        raise AssertionError("not called")


class Target:
    name = "cluster"
    type = "AmlCompute"


class HDInsightCompute:
    name = "spark"
