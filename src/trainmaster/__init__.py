"""Trainmaster: train with one object and one call, on your own machines.

The names below are the public ones; each is loaded when it is first used. This file also opens the package inside jobs,
on Python 3.6 and with nothing else installed: there only `Run` and the errors can be had.
"""

import os
import sys

__version__ = "0.1.0"

_HOMES = {
    "Workspace": "trainmaster.workspace",
    "Experiment": "trainmaster.experiment",
    "Run": "trainmaster.run",
    "ScriptRun": "trainmaster.run",
    "Chainer": "trainmaster.estimators",
    "Estimator": "trainmaster.estimators",
    "PyTorch": "trainmaster.estimators",
    "TensorFlow": "trainmaster.estimators",
    "SKLearn": "trainmaster.estimators",
    "ScriptRunConfig": "trainmaster.estimators",
    "RunConfiguration": "trainmaster.estimators",
    "Mpi": "trainmaster.estimators",
    "ParameterServer": "trainmaster.estimators",
    "Gloo": "trainmaster.estimators",
    "Nccl": "trainmaster.estimators",
    "MpiConfiguration": "trainmaster.estimators",
    "TensorflowConfiguration": "trainmaster.estimators",
    "PyTorchConfiguration": "trainmaster.estimators",
    "DockerConfiguration": "trainmaster.estimators",
    "Environment": "trainmaster.environments.definition",
    "CondaDependencies": "trainmaster.environments.conda_dependencies",
    "ComputeTarget": "trainmaster.compute",
    "LocalCompute": "trainmaster.compute",
    "AmlCompute": "trainmaster.compute",
    "RemoteCompute": "trainmaster.compute",
    "SlurmCompute": "trainmaster.compute",
    "SshCompute": "trainmaster.compute",
    "Keyvault": "trainmaster.keyvault",
    "RunDetails": "trainmaster.widgets",
    "Datastore": "trainmaster.datastores",
    "DataReference": "trainmaster.datastores",
    "DataPath": "trainmaster.datastores",
    "Dataset": "trainmaster.datasets",
    "DatasetConsumptionConfig": "trainmaster.datasets",
    "OutputFileDatasetConfig": "trainmaster.datasets",
    "Model": "trainmaster.models",
    "InferenceConfig": "trainmaster.serving.inference_config",
    "Image": "trainmaster.serving.image",
    "ContainerImage": "trainmaster.serving.image",
    "Webservice": "trainmaster.serving.webservice",
    "AciWebservice": "trainmaster.serving.aci",
    "AksWebservice": "trainmaster.serving.aks",
    "LocalWebservice": "trainmaster.serving.local",
    "BanditPolicy": "trainmaster.tuning",
    "BayesianParameterSampling": "trainmaster.tuning",
    "GridParameterSampling": "trainmaster.tuning",
    "HyperDriveConfig": "trainmaster.tuning",
    "HyperDriveRun": "trainmaster.tuning",
    "HyperbandPolicy": "trainmaster.tuning",
    "MedianStoppingPolicy": "trainmaster.tuning",
    "NoTerminationPolicy": "trainmaster.tuning",
    "PrimaryMetricGoal": "trainmaster.tuning",
    "RandomParameterSampling": "trainmaster.tuning",
    "TruncationSelectionPolicy": "trainmaster.tuning",
    "choice": "trainmaster.tuning",
    "lognormal": "trainmaster.tuning",
    "loguniform": "trainmaster.tuning",
    "normal": "trainmaster.tuning",
    "qlognormal": "trainmaster.tuning",
    "qloguniform": "trainmaster.tuning",
    "qnormal": "trainmaster.tuning",
    "quniform": "trainmaster.tuning",
    "randint": "trainmaster.tuning",
    "uniform": "trainmaster.tuning",
}

# In a job these are had from its kit.
_HOMES_IN_JOBS = {
    "Run": "trainmaster.runtime",
    "Dataset": "trainmaster.runtime.datasets",
    "Datastore": "trainmaster.runtime.datastore",
    "Model": "trainmaster.runtime.models",
}

__all__ = sorted(_HOMES)

# Type checkers take this for true; nobody imports `typing` for it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainmaster.compute import AmlCompute as AmlCompute
    from trainmaster.compute import ComputeTarget as ComputeTarget
    from trainmaster.compute import LocalCompute as LocalCompute
    from trainmaster.compute import RemoteCompute as RemoteCompute
    from trainmaster.compute import SlurmCompute as SlurmCompute
    from trainmaster.compute import SshCompute as SshCompute
    from trainmaster.datasets import Dataset as Dataset
    from trainmaster.datasets import DatasetConsumptionConfig as DatasetConsumptionConfig
    from trainmaster.datasets import OutputFileDatasetConfig as OutputFileDatasetConfig
    from trainmaster.datastores import DataPath as DataPath
    from trainmaster.datastores import DataReference as DataReference
    from trainmaster.datastores import Datastore as Datastore
    from trainmaster.estimators import Chainer as Chainer
    from trainmaster.estimators import DockerConfiguration as DockerConfiguration
    from trainmaster.estimators import Estimator as Estimator
    from trainmaster.estimators import Gloo as Gloo
    from trainmaster.estimators import Mpi as Mpi
    from trainmaster.estimators import MpiConfiguration as MpiConfiguration
    from trainmaster.estimators import Nccl as Nccl
    from trainmaster.estimators import ParameterServer as ParameterServer
    from trainmaster.estimators import PyTorch as PyTorch
    from trainmaster.estimators import PyTorchConfiguration as PyTorchConfiguration
    from trainmaster.estimators import RunConfiguration as RunConfiguration
    from trainmaster.estimators import ScriptRunConfig as ScriptRunConfig
    from trainmaster.estimators import SKLearn as SKLearn
    from trainmaster.estimators import TensorFlow as TensorFlow
    from trainmaster.estimators import TensorflowConfiguration as TensorflowConfiguration
    from trainmaster.experiment import Experiment as Experiment
    from trainmaster.keyvault import Keyvault as Keyvault
    from trainmaster.models import Model as Model
    from trainmaster.run import Run as Run
    from trainmaster.run import ScriptRun as ScriptRun
    from trainmaster.serving.aci import AciWebservice as AciWebservice
    from trainmaster.serving.aks import AksWebservice as AksWebservice
    from trainmaster.serving.image import ContainerImage as ContainerImage
    from trainmaster.serving.image import Image as Image
    from trainmaster.serving.inference_config import InferenceConfig as InferenceConfig
    from trainmaster.serving.local import LocalWebservice as LocalWebservice
    from trainmaster.serving.webservice import Webservice as Webservice
    from trainmaster.tuning import BanditPolicy as BanditPolicy
    from trainmaster.tuning import BayesianParameterSampling as BayesianParameterSampling
    from trainmaster.tuning import GridParameterSampling as GridParameterSampling
    from trainmaster.tuning import HyperbandPolicy as HyperbandPolicy
    from trainmaster.tuning import HyperDriveConfig as HyperDriveConfig
    from trainmaster.tuning import HyperDriveRun as HyperDriveRun
    from trainmaster.tuning import MedianStoppingPolicy as MedianStoppingPolicy
    from trainmaster.tuning import NoTerminationPolicy as NoTerminationPolicy
    from trainmaster.tuning import PrimaryMetricGoal as PrimaryMetricGoal
    from trainmaster.tuning import RandomParameterSampling as RandomParameterSampling
    from trainmaster.tuning import TruncationSelectionPolicy as TruncationSelectionPolicy
    from trainmaster.tuning import choice as choice
    from trainmaster.tuning import lognormal as lognormal
    from trainmaster.tuning import loguniform as loguniform
    from trainmaster.tuning import normal as normal
    from trainmaster.tuning import qlognormal as qlognormal
    from trainmaster.tuning import qloguniform as qloguniform
    from trainmaster.tuning import qnormal as qnormal
    from trainmaster.tuning import quniform as quniform
    from trainmaster.tuning import randint as randint
    from trainmaster.tuning import uniform as uniform
    from trainmaster.widgets import RunDetails as RunDetails
    from trainmaster.workspace import Workspace as Workspace


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
    if os.path.exists(os.path.join(os.path.dirname(__file__), "workspace.py")):
        return True
    import pkgutil

    module = sys.modules[__name__]
    module.__path__ = pkgutil.extend_path(module.__path__, __name__)
    return any(os.path.exists(os.path.join(place, "workspace.py")) for place in module.__path__)


class _LazyPackage(type(sys)):  # type: ignore[misc]
    # Python 3.6 has no module-level __getattr__.
    def __getattr__(self, name):
        value = _load(name)
        setattr(self, name, value)
        return value

    def __dir__(self):
        return sorted(set(self.__dict__) | set(__all__))


sys.modules[__name__].__class__ = _LazyPackage
