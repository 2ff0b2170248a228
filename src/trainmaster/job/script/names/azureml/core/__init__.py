"""`azureml.core` inside a job: Run, Dataset and VERSION; the rest stands for what the full Trainmaster has."""

import sys

import trainmaster
from trainmaster.job.script.absent import LazyPackage
from trainmaster.job.script.run import Run

VERSION = trainmaster.__version__
__version__ = VERSION

_homes = {
    "ComputeTarget": "compute",
    "ContainerRegistry": "container_registry",
    "Dataset": "dataset",
    "Datastore": "datastore",
    "Environment": "environment",
    "Experiment": "experiment",
    "Image": "image",
    "Keyvault": "keyvault",
    "Model": "model",
    "RunConfiguration": "runconfig",
    "ScriptRun": "script_run",
    "ScriptRunConfig": "script_run_config",
    "Webservice": "webservice",
    "Workspace": "workspace",
}
__all__ = ["VERSION", "Run", "get_run", *sorted(_homes)]


def get_run(experiment, run_id, **kwargs):
    """The run with this id (full Trainmaster)."""
    return Run(experiment, run_id)


sys.modules[__name__].__class__ = LazyPackage
