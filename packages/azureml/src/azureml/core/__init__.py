"""Shows `azureml.core` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster import __version__ as VERSION
from trainmaster import __version__ as __version__
from trainmaster.sdk.compute.target import ComputeTarget as ComputeTarget
from trainmaster.sdk.datasets.dataset import Dataset as Dataset
from trainmaster.sdk.datastores.datastore import Datastore as Datastore
from trainmaster.sdk.environment.definition import Environment as Environment
from trainmaster.sdk.environment.docker_section import ContainerRegistry as ContainerRegistry
from trainmaster.sdk.estimators.run_configuration import RunConfiguration as RunConfiguration
from trainmaster.sdk.estimators.script_run_config import ScriptRunConfig as ScriptRunConfig
from trainmaster.sdk.experiment import Experiment as Experiment
from trainmaster.sdk.models.model import Model as Model
from trainmaster.sdk.run.run import Run as Run
from trainmaster.sdk.run.run import ScriptRun as ScriptRun
from trainmaster.sdk.run.run import get_run as get_run
from trainmaster.sdk.services.webservice import Webservice as Webservice
from trainmaster.sdk.v1.image import Image as Image
from trainmaster.sdk.workspace.keyvault import Keyvault as Keyvault
from trainmaster.sdk.workspace.workspace import Workspace as Workspace
