"""Estimators: what a person writes, checked and compiled to a JobSpec. Each name is loaded when it is first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainmaster.datastores import DataReferenceConfiguration
    from trainmaster.environments.conda_dependencies import CondaDependencies
    from trainmaster.environments.definition import Environment
    from trainmaster.estimators.chainer import Chainer
    from trainmaster.estimators.compile import Submittable
    from trainmaster.estimators.distributed_job import (
        MpiConfiguration,
        ParallelTaskConfiguration,
        PyTorchConfiguration,
        TensorflowConfiguration,
    )
    from trainmaster.estimators.distributed_training import Gloo, Mpi, Nccl, ParameterServer
    from trainmaster.estimators.docker import DockerConfiguration
    from trainmaster.estimators.estimator import Estimator
    from trainmaster.estimators.pytorch import PyTorch
    from trainmaster.estimators.run_configuration import RunConfiguration
    from trainmaster.estimators.script_run_config import ScriptRunConfig
    from trainmaster.estimators.sklearn import SKLearn
    from trainmaster.estimators.tensorflow import TensorFlow

_HOMES = {
    "Chainer": "trainmaster.estimators.chainer",
    "CondaDependencies": "trainmaster.environments.conda_dependencies",
    "DataReferenceConfiguration": "trainmaster.datastores",
    "DockerConfiguration": "trainmaster.estimators.docker",
    "Environment": "trainmaster.environments.definition",
    "Estimator": "trainmaster.estimators.estimator",
    "Gloo": "trainmaster.estimators.distributed_training",
    "Mpi": "trainmaster.estimators.distributed_training",
    "MpiConfiguration": "trainmaster.estimators.distributed_job",
    "Nccl": "trainmaster.estimators.distributed_training",
    "ParallelTaskConfiguration": "trainmaster.estimators.distributed_job",
    "ParameterServer": "trainmaster.estimators.distributed_training",
    "PyTorch": "trainmaster.estimators.pytorch",
    "PyTorchConfiguration": "trainmaster.estimators.distributed_job",
    "RunConfiguration": "trainmaster.estimators.run_configuration",
    "SKLearn": "trainmaster.estimators.sklearn",
    "ScriptRunConfig": "trainmaster.estimators.script_run_config",
    "Submittable": "trainmaster.estimators.compile",
    "TensorFlow": "trainmaster.estimators.tensorflow",
    "TensorflowConfiguration": "trainmaster.estimators.distributed_job",
}

__all__ = [
    "Chainer",
    "CondaDependencies",
    "DataReferenceConfiguration",
    "DockerConfiguration",
    "Environment",
    "Estimator",
    "Gloo",
    "Mpi",
    "MpiConfiguration",
    "Nccl",
    "ParallelTaskConfiguration",
    "ParameterServer",
    "PyTorch",
    "PyTorchConfiguration",
    "RunConfiguration",
    "SKLearn",
    "ScriptRunConfig",
    "Submittable",
    "TensorFlow",
    "TensorflowConfiguration",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value
