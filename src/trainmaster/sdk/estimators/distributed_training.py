"""Mpi, ParameterServer, Gloo and Nccl: what `distributed_training` of an estimator says."""

from __future__ import annotations

from trainmaster.sdk.estimators.values import count, server_count


class Mpi:
    """Processes that find each other through Open MPI, with Horovod or mpi4py."""

    def __init__(self, process_count_per_node: int = 1) -> None:
        self.process_count_per_node = count("process_count_per_node", process_count_per_node)

    def __str__(self) -> str:
        return "mpi"


class ParameterServer:
    """TensorFlow's parameter servers and workers, told to each other by `TF_CONFIG`.

    No servers (0) is for workers that share their gradients themselves, as `MultiWorkerMirroredStrategy` does.
    """

    def __init__(self, worker_count: int = 1, parameter_server_count: int = 1) -> None:
        self.worker_count = count("worker_count", worker_count)
        self.parameter_server_count = server_count("parameter_server_count", parameter_server_count)

    def __str__(self) -> str:
        return "ps"


class Gloo:
    """Native PyTorch processes over Gloo, one per node unless process_count_per_node says more."""

    def __str__(self) -> str:
        return "gloo"


class Nccl:
    """Native PyTorch processes over NCCL, one per node unless process_count_per_node says more."""

    def __str__(self) -> str:
        return "nccl"
