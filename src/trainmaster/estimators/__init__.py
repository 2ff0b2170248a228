"""Estimators: what a person writes, checked and compiled to a JobSpec."""

from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from trainmaster.datastores import DataReferenceConfiguration

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
    # Its home is with the datastores, which most programs need later or not at all.
    if name == "DataReferenceConfiguration":
        from trainmaster.datastores import DataReferenceConfiguration

        return DataReferenceConfiguration
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
