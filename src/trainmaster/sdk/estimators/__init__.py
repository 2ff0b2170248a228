"""Estimators: what a person writes, checked and compiled to a JobSpec. Each name is loaded when it is first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainmaster.sdk.datastores import DataReferenceConfiguration
    from trainmaster.sdk.environment.conda_dependencies import CondaDependencies
    from trainmaster.sdk.environment.definition import Environment
    from trainmaster.sdk.estimators.chainer import Chainer
    from trainmaster.sdk.estimators.compile import Submittable
    from trainmaster.sdk.estimators.distributed_job import (
        MpiConfiguration,
        ParallelTaskConfiguration,
        PyTorchConfiguration,
        TensorflowConfiguration,
    )
    from trainmaster.sdk.estimators.distributed_training import Gloo, Mpi, Nccl, ParameterServer
    from trainmaster.sdk.estimators.docker import DockerConfiguration
    from trainmaster.sdk.estimators.estimator import Estimator
    from trainmaster.sdk.estimators.pytorch import PyTorch
    from trainmaster.sdk.estimators.run_configuration import RunConfiguration
    from trainmaster.sdk.estimators.script_run_config import ScriptRunConfig
    from trainmaster.sdk.estimators.sklearn import SKLearn
    from trainmaster.sdk.estimators.tensorflow import TensorFlow

_HOMES = {
    "Chainer": "trainmaster.sdk.estimators.chainer",
    "CondaDependencies": "trainmaster.sdk.environment.conda_dependencies",
    "DataReferenceConfiguration": "trainmaster.sdk.datastores",
    "DockerConfiguration": "trainmaster.sdk.estimators.docker",
    "Environment": "trainmaster.sdk.environment.definition",
    "Estimator": "trainmaster.sdk.estimators.estimator",
    "Gloo": "trainmaster.sdk.estimators.distributed_training",
    "Mpi": "trainmaster.sdk.estimators.distributed_training",
    "MpiConfiguration": "trainmaster.sdk.estimators.distributed_job",
    "Nccl": "trainmaster.sdk.estimators.distributed_training",
    "ParallelTaskConfiguration": "trainmaster.sdk.estimators.distributed_job",
    "ParameterServer": "trainmaster.sdk.estimators.distributed_training",
    "PyTorch": "trainmaster.sdk.estimators.pytorch",
    "PyTorchConfiguration": "trainmaster.sdk.estimators.distributed_job",
    "RunConfiguration": "trainmaster.sdk.estimators.run_configuration",
    "SKLearn": "trainmaster.sdk.estimators.sklearn",
    "ScriptRunConfig": "trainmaster.sdk.estimators.script_run_config",
    "Submittable": "trainmaster.sdk.estimators.compile",
    "TensorFlow": "trainmaster.sdk.estimators.tensorflow",
    "TensorflowConfiguration": "trainmaster.sdk.estimators.distributed_job",
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
