"""What a run in a job knows of its experiment and workspace: their names, from the job's variables."""

import os


class JobWorkspace:
    """The workspace of the run: its name and what v1 scripts ask it for."""

    def __init__(self):
        self.name = os.environ.get("TRAINMASTER_WORKSPACE") or os.environ.get("AZUREML_ARM_WORKSPACE_NAME", "")
        self.subscription_id = os.environ.get("AZUREML_ARM_SUBSCRIPTION", "")
        self.resource_group = os.environ.get("AZUREML_ARM_RESOURCEGROUP", "")
        self.location = os.environ.get("AZUREML_ARM_LOCATION", "local")

    def __getattr__(self, name):
        raise AttributeError(_ONLY_NAMES.format("workspace", name))

    def __repr__(self):
        return "Workspace(name={!r})".format(self.name)


class JobExperiment:
    """The experiment of the run: its name and workspace."""

    def __init__(self):
        self.name = os.environ.get("TRAINMASTER_EXPERIMENT") or os.environ.get("AZUREML_ARM_PROJECT_NAME", "")
        self.id = os.environ.get("AZUREML_EXPERIMENT_ID", "")
        self.workspace = JobWorkspace()

    def __getattr__(self, name):
        raise AttributeError(_ONLY_NAMES.format("experiment", name))

    def __repr__(self):
        return "Experiment(name={!r})".format(self.name)


_ONLY_NAMES = (
    "inside a job the {0} has only its names, not {1!r}: "
    "open it outside of the job, or with Trainmaster itself installed in the job's environment"
)
