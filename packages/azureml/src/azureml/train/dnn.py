"""Shows `azureml.train.dnn` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.estimators.distributed_training import Gloo as Gloo
from trainmaster.sdk.estimators.distributed_training import Mpi as Mpi
from trainmaster.sdk.estimators.distributed_training import Nccl as Nccl
from trainmaster.sdk.estimators.distributed_training import ParameterServer as ParameterServer
from trainmaster.sdk.v1.estimators import Chainer as Chainer
from trainmaster.sdk.v1.estimators import PyTorch as PyTorch
from trainmaster.sdk.v1.estimators import TensorFlow as TensorFlow
