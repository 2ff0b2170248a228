"""Trainmaster: train with one object and one call, on your own machines.

The names below are the public ones; each is loaded when it is first used. This file also opens the package inside jobs,
on Python 3.6 and with nothing else installed: there only `Run` and the errors can be had.
"""

import os
import sys

__version__ = "0.1.0"

_HOMES = {
    "Workspace": "trainmaster.sdk.workspace.workspace",
    "Experiment": "trainmaster.sdk.experiment",
    "Run": "trainmaster.sdk.run.run",
    "ScriptRun": "trainmaster.sdk.run.run",
    "Chainer": "trainmaster.sdk.estimators",
    "Estimator": "trainmaster.sdk.estimators",
    "PyTorch": "trainmaster.sdk.estimators",
    "TensorFlow": "trainmaster.sdk.estimators",
    "SKLearn": "trainmaster.sdk.estimators",
    "ScriptRunConfig": "trainmaster.sdk.estimators",
    "RunConfiguration": "trainmaster.sdk.estimators",
    "Mpi": "trainmaster.sdk.estimators",
    "ParameterServer": "trainmaster.sdk.estimators",
    "Gloo": "trainmaster.sdk.estimators",
    "Nccl": "trainmaster.sdk.estimators",
    "MpiConfiguration": "trainmaster.sdk.estimators",
    "TensorflowConfiguration": "trainmaster.sdk.estimators",
    "PyTorchConfiguration": "trainmaster.sdk.estimators",
    "DockerConfiguration": "trainmaster.sdk.estimators",
    "Environment": "trainmaster.sdk.environment.definition",
    "CondaDependencies": "trainmaster.sdk.environment.conda_dependencies",
    "ComputeTarget": "trainmaster.sdk.compute",
    "LocalCompute": "trainmaster.sdk.compute",
    "AmlCompute": "trainmaster.sdk.compute",
    "RemoteCompute": "trainmaster.sdk.compute",
    "SlurmCompute": "trainmaster.sdk.compute",
    "SshCompute": "trainmaster.sdk.compute",
    "Keyvault": "trainmaster.sdk.workspace.keyvault",
    "RunDetails": "trainmaster.notebook.widgets",
    "Datastore": "trainmaster.sdk.datastores",
    "DataReference": "trainmaster.sdk.datastores",
    "DataPath": "trainmaster.sdk.datastores",
    "Dataset": "trainmaster.sdk.datasets",
    "DatasetConsumptionConfig": "trainmaster.sdk.datasets",
    "OutputFileDatasetConfig": "trainmaster.sdk.datasets",
    "Model": "trainmaster.sdk.models",
    "InferenceConfig": "trainmaster.sdk.services.inference_config",
    "Image": "trainmaster.sdk.services.image",
    "ContainerImage": "trainmaster.sdk.services.image",
    "Webservice": "trainmaster.sdk.services.webservice",
    "AciWebservice": "trainmaster.sdk.services.aci",
    "AksWebservice": "trainmaster.sdk.services.aks",
    "LocalWebservice": "trainmaster.sdk.services.local",
    "BanditPolicy": "trainmaster.sdk.sweeps",
    "BayesianParameterSampling": "trainmaster.sdk.sweeps",
    "GridParameterSampling": "trainmaster.sdk.sweeps",
    "HyperDriveConfig": "trainmaster.sdk.sweeps",
    "HyperDriveRun": "trainmaster.sdk.sweeps",
    "HyperbandPolicy": "trainmaster.sdk.sweeps",
    "MedianStoppingPolicy": "trainmaster.sdk.sweeps",
    "NoTerminationPolicy": "trainmaster.sdk.sweeps",
    "PrimaryMetricGoal": "trainmaster.sdk.sweeps",
    "RandomParameterSampling": "trainmaster.sdk.sweeps",
    "TruncationSelectionPolicy": "trainmaster.sdk.sweeps",
    "choice": "trainmaster.sdk.sweeps",
    "lognormal": "trainmaster.sdk.sweeps",
    "loguniform": "trainmaster.sdk.sweeps",
    "normal": "trainmaster.sdk.sweeps",
    "qlognormal": "trainmaster.sdk.sweeps",
    "qloguniform": "trainmaster.sdk.sweeps",
    "qnormal": "trainmaster.sdk.sweeps",
    "quniform": "trainmaster.sdk.sweeps",
    "randint": "trainmaster.sdk.sweeps",
    "uniform": "trainmaster.sdk.sweeps",
}

# In a job these are had from its kit.
_HOMES_IN_JOBS = {
    "Run": "trainmaster.job.script",
    "Dataset": "trainmaster.job.script.datasets",
    "Datastore": "trainmaster.job.script.datastore",
    "Model": "trainmaster.job.script.models",
}

__all__ = sorted(_HOMES)

# Type checkers take this for true; nobody imports `typing` for it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainmaster.notebook.widgets import RunDetails as RunDetails
    from trainmaster.sdk.compute import AmlCompute as AmlCompute
    from trainmaster.sdk.compute import ComputeTarget as ComputeTarget
    from trainmaster.sdk.compute import LocalCompute as LocalCompute
    from trainmaster.sdk.compute import RemoteCompute as RemoteCompute
    from trainmaster.sdk.compute import SlurmCompute as SlurmCompute
    from trainmaster.sdk.compute import SshCompute as SshCompute
    from trainmaster.sdk.datasets import Dataset as Dataset
    from trainmaster.sdk.datasets import DatasetConsumptionConfig as DatasetConsumptionConfig
    from trainmaster.sdk.datasets import OutputFileDatasetConfig as OutputFileDatasetConfig
    from trainmaster.sdk.datastores import DataPath as DataPath
    from trainmaster.sdk.datastores import DataReference as DataReference
    from trainmaster.sdk.datastores import Datastore as Datastore
    from trainmaster.sdk.estimators import Chainer as Chainer
    from trainmaster.sdk.estimators import DockerConfiguration as DockerConfiguration
    from trainmaster.sdk.estimators import Estimator as Estimator
    from trainmaster.sdk.estimators import Gloo as Gloo
    from trainmaster.sdk.estimators import Mpi as Mpi
    from trainmaster.sdk.estimators import MpiConfiguration as MpiConfiguration
    from trainmaster.sdk.estimators import Nccl as Nccl
    from trainmaster.sdk.estimators import ParameterServer as ParameterServer
    from trainmaster.sdk.estimators import PyTorch as PyTorch
    from trainmaster.sdk.estimators import PyTorchConfiguration as PyTorchConfiguration
    from trainmaster.sdk.estimators import RunConfiguration as RunConfiguration
    from trainmaster.sdk.estimators import ScriptRunConfig as ScriptRunConfig
    from trainmaster.sdk.estimators import SKLearn as SKLearn
    from trainmaster.sdk.estimators import TensorFlow as TensorFlow
    from trainmaster.sdk.estimators import TensorflowConfiguration as TensorflowConfiguration
    from trainmaster.sdk.experiment import Experiment as Experiment
    from trainmaster.sdk.models import Model as Model
    from trainmaster.sdk.run.run import Run as Run
    from trainmaster.sdk.run.run import ScriptRun as ScriptRun
    from trainmaster.sdk.services.aci import AciWebservice as AciWebservice
    from trainmaster.sdk.services.aks import AksWebservice as AksWebservice
    from trainmaster.sdk.services.image import ContainerImage as ContainerImage
    from trainmaster.sdk.services.image import Image as Image
    from trainmaster.sdk.services.inference_config import InferenceConfig as InferenceConfig
    from trainmaster.sdk.services.local import LocalWebservice as LocalWebservice
    from trainmaster.sdk.services.webservice import Webservice as Webservice
    from trainmaster.sdk.sweeps import BanditPolicy as BanditPolicy
    from trainmaster.sdk.sweeps import BayesianParameterSampling as BayesianParameterSampling
    from trainmaster.sdk.sweeps import GridParameterSampling as GridParameterSampling
    from trainmaster.sdk.sweeps import HyperbandPolicy as HyperbandPolicy
    from trainmaster.sdk.sweeps import HyperDriveConfig as HyperDriveConfig
    from trainmaster.sdk.sweeps import HyperDriveRun as HyperDriveRun
    from trainmaster.sdk.sweeps import MedianStoppingPolicy as MedianStoppingPolicy
    from trainmaster.sdk.sweeps import NoTerminationPolicy as NoTerminationPolicy
    from trainmaster.sdk.sweeps import PrimaryMetricGoal as PrimaryMetricGoal
    from trainmaster.sdk.sweeps import RandomParameterSampling as RandomParameterSampling
    from trainmaster.sdk.sweeps import TruncationSelectionPolicy as TruncationSelectionPolicy
    from trainmaster.sdk.sweeps import choice as choice
    from trainmaster.sdk.sweeps import lognormal as lognormal
    from trainmaster.sdk.sweeps import loguniform as loguniform
    from trainmaster.sdk.sweeps import normal as normal
    from trainmaster.sdk.sweeps import qlognormal as qlognormal
    from trainmaster.sdk.sweeps import qloguniform as qloguniform
    from trainmaster.sdk.sweeps import qnormal as qnormal
    from trainmaster.sdk.sweeps import quniform as quniform
    from trainmaster.sdk.sweeps import randint as randint
    from trainmaster.sdk.sweeps import uniform as uniform
    from trainmaster.sdk.workspace.keyvault import Keyvault as Keyvault
    from trainmaster.sdk.workspace.workspace import Workspace as Workspace


def _load(name):
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError("module 'trainmaster' has no attribute {!r}".format(name))
    in_job = "TRAINMASTER_RUN_ID" in os.environ
    # A service has the kit too, and mostly nothing else of Trainmaster.
    if name in _HOMES_IN_JOBS and (in_job or not _find_full_package()):
        home = _HOMES_IN_JOBS[name]
    else:
        _find_full_package()
    __import__(home)
    return getattr(sys.modules[home], name)


def _find_full_package():
    """In a job this file comes from the kit; the rest may be installed in the job's own environment. Whether it is."""
    if os.path.exists(os.path.join(os.path.dirname(__file__), "sdk")):
        return True
    import pkgutil

    module = sys.modules[__name__]
    module.__path__ = pkgutil.extend_path(module.__path__, __name__)
    return any(os.path.exists(os.path.join(place, "sdk")) for place in module.__path__)


class _LazyPackage(type(sys)):  # type: ignore[misc]
    # Python 3.6 has no module-level __getattr__.
    def __getattr__(self, name):
        value = _load(name)
        setattr(self, name, value)
        return value

    def __dir__(self):
        return sorted(set(self.__dict__) | set(__all__))


class _LazyErrors(type(sys)):  # type: ignore[misc]
    # `trainmaster.errors` is public. Agents need none of it, so it is loaded when it is first used.
    def __getattr__(self, name):
        __import__("trainmaster.job.errors")
        return getattr(sys.modules["trainmaster.job.errors"], name)


errors = sys.modules[__name__ + ".errors"] = _LazyErrors(__name__ + ".errors")
sys.modules[__name__].__class__ = _LazyPackage
