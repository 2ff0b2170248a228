"""The names of v1 that are used most."""

from azureml._lazy import names
from trainmaster import __version__ as VERSION

__version__ = VERSION
__getattr__, __dir__, __all__ = names(
    __name__,
    {
        "trainmaster": "Run",
        "trainmaster.workspace": "Workspace",
        "trainmaster.experiment": "Experiment",
        "trainmaster.run": "ScriptRun get_run",
        "trainmaster.estimators": "RunConfiguration ScriptRunConfig",
        "trainmaster.environments.definition": "Environment",
        "trainmaster.environments.docker_section": "ContainerRegistry",
        "trainmaster.datastores": "Datastore",
        "trainmaster.datasets": "Dataset",
        "trainmaster.compute": "ComputeTarget",
        "trainmaster.keyvault": "Keyvault",
        "trainmaster.models": "Model",
        "trainmaster.serving.image": "Image",
        "trainmaster.serving.webservice": "Webservice",
    },
)
