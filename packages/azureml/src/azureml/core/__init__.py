"""The names of v1 that are used most."""

from azureml._lazy import names
from trainmaster import __version__ as VERSION

__version__ = VERSION
__getattr__, __dir__, __all__ = names(
    __name__,
    {
        "trainmaster": "Run",
        "trainmaster.sdk.workspace.workspace": "Workspace",
        "trainmaster.sdk.experiment": "Experiment",
        "trainmaster.sdk.run.run": "ScriptRun get_run",
        "trainmaster.sdk.estimators": "RunConfiguration ScriptRunConfig",
        "trainmaster.sdk.environment.definition": "Environment",
        "trainmaster.sdk.environment.docker_section": "ContainerRegistry",
        "trainmaster.sdk.datastores": "Datastore",
        "trainmaster.sdk.datasets": "Dataset",
        "trainmaster.sdk.compute": "ComputeTarget",
        "trainmaster.sdk.workspace.keyvault": "Keyvault",
        "trainmaster.sdk.models": "Model",
        "trainmaster.sdk.services.image": "Image",
        "trainmaster.sdk.services.webservice": "Webservice",
    },
)
