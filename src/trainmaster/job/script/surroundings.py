"""The experiment and workspace of a run in a job: their names, from the job's variables.

Everything else about them needs the full Trainmaster in the job's environment.
"""

import os

from trainmaster.job.errors import RunEnvironmentException, TrainmasterError
from trainmaster.job.script.absent import Partly

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from trainmaster.job.script.secrets import JobKeyvault

    # That of jobs, or the SDK's.
    Datastore = Any


class JobWorkspace:
    """The workspace of the run: its name and what v1 scripts ask it for."""

    def __init__(self) -> None:
        self.name = os.environ.get("TRAINMASTER_WORKSPACE") or os.environ.get("AZUREML_ARM_WORKSPACE_NAME", "")
        self.subscription_id = os.environ.get("AZUREML_ARM_SUBSCRIPTION", "")
        self.resource_group = os.environ.get("AZUREML_ARM_RESOURCEGROUP", "")
        self.location = os.environ.get("AZUREML_ARM_LOCATION", "local")

    def get_default_keyvault(self) -> "JobKeyvault":
        """The secrets of the workspace."""
        from trainmaster.job.script.secrets import JobKeyvault

        return JobKeyvault(self)

    def get_default_datastore(self) -> "Datastore":
        """The default datastore."""
        from trainmaster.job.script.datastores import default_datastore

        return default_datastore(self)

    @property
    def datastores(self) -> "Any":
        """Name to datastore."""
        from trainmaster.job.script.datastores import all_datastores

        return all_datastores(self)

    def get_mlflow_tracking_uri(self) -> str:
        """The address by which MLflow logs to this run."""
        return "trainmaster:run"

    def open_full(self) -> "Any":
        """This workspace as the full Trainmaster opens it."""
        return full_workspace()

    def __getattr__(self, name: str) -> "Any":
        return _load_attribute("workspace", name, full_workspace)

    def __repr__(self) -> str:
        return "Workspace(name={!r})".format(self.name)


class RunWorkspace(JobWorkspace, metaclass=Partly):
    """`Workspace` in a job without the full Trainmaster: always the workspace of the run."""

    __module__ = "azureml.core.workspace"

    def __init__(
        self,
        subscription_id: str = "",
        resource_group: str = "",
        workspace_name: str = "",
        *args: "Any",
        **kwargs: "Any",
    ) -> None:
        super(RunWorkspace, self).__init__()
        if workspace_name not in ("", self.name):
            raise RunEnvironmentException(
                "workspace {!r} cannot be opened in this job".format(workspace_name),
                cause="The run is in workspace {!r}, and a job can open no other one.".format(self.name),
                hint="Do it outside of the job, or add 'trainmaster' (Python 3.11 or newer) to its packages.",
            )

    @classmethod
    def from_config(cls, path: "Any" = None, auth: "Any" = None, _file_name: "Any" = None) -> "RunWorkspace":
        """The workspace of the run."""
        return cls()

    @classmethod
    def get(cls, name: str = "", *args: "Any", **kwargs: "Any") -> "RunWorkspace":
        """The workspace of the run; an error for any other name."""
        return cls(workspace_name=name)


RunWorkspace.__name__ = "Workspace"


class JobExperiment:
    """The experiment of the run: its name and workspace."""

    def __init__(self) -> None:
        self.name = os.environ.get("TRAINMASTER_EXPERIMENT") or os.environ.get("AZUREML_ARM_PROJECT_NAME", "")
        self.id = os.environ.get("AZUREML_EXPERIMENT_ID", "")
        self.workspace = JobWorkspace()

    def __getattr__(self, name: str) -> "Any":
        return _load_attribute("experiment", name, lambda: _full_experiment(self.name))

    def __repr__(self) -> str:
        return "Experiment(name={!r})".format(self.name)


def _load_attribute(kind: str, name: str, open_full: "Callable[[], Any]") -> "Any":
    if name.startswith("__"):
        raise AttributeError(name)
    try:
        full = open_full()
    except TrainmasterError:
        # Without the error above it: what could not be imported does not help the reader.
        raise AttributeError(
            "inside a job the {0} has no {1!r}: use it outside of the job, or install Trainmaster itself in the job's "
            "environment".format(kind, name)
        ) from None
    return getattr(full, name)


def full_workspace() -> "Any":
    """The workspace as the full Trainmaster opens it: the folder above the run's folder."""
    from trainmaster.job.script.full import full_package

    runs = os.path.dirname(os.path.abspath(os.environ.get("TRAINMASTER_RUN_FOLDER", "")))
    return full_package("the workspace").Workspace(path=os.path.dirname(runs))


def _full_experiment(name: str) -> "Any":
    from trainmaster.job.script.full import full_package

    return full_package("the experiment").Experiment(full_workspace(), name)
