"""Mpi, ParameterServer, Gloo and Nccl: the values of an estimator's `distributed_training`."""

from __future__ import annotations

from trainmaster.sdk.estimators.values import count, server_count


class Mpi:
    """Processes that find each other through Open MPI, with Horovod or mpi4py."""

    def __init__(self, process_count_per_node: int = 1) -> None:
        self.process_count_per_node = count("process_count_per_node", process_count_per_node)

    def __str__(self) -> str:
        return "mpi"


class ParameterServer:
    """TensorFlow's parameter servers and workers, which find each other through `TF_CONFIG`.

    Use 0 servers for workers that exchange gradients themselves, as with `MultiWorkerMirroredStrategy`.
    """

    def __init__(self, worker_count: int = 1, parameter_server_count: int = 1) -> None:
        self.worker_count = count("worker_count", worker_count)
        self.parameter_server_count = server_count("parameter_server_count", parameter_server_count)

    def __str__(self) -> str:
        return "ps"


class _Torch:
    """Native PyTorch processes, which may be elastic."""

    def __init__(
        self, min_nodes: int | None = None, max_nodes: int | None = None, wait_seconds: int | None = None
    ) -> None:
        self.min_nodes = None if min_nodes is None else count("min_nodes", min_nodes)
        self.max_nodes = None if max_nodes is None else count("max_nodes", max_nodes)
        self.wait_seconds = None if wait_seconds is None else count("wait_seconds", wait_seconds, least=0)


class Gloo(_Torch):
    """Native PyTorch processes over Gloo, by default one per node.

    `Gloo(min_nodes=1)` is elastic: a run that loses nodes goes on with the others, if at least that many are left. It
    also starts with that many if the others are not free within `wait_seconds` (default: 300). `max_nodes` is another
    name for the estimator's `node_count`.
    """

    def __str__(self) -> str:
        return "gloo"


class Nccl(_Torch):
    """Native PyTorch processes over NCCL, by default one per node.

    `Nccl(min_nodes=1)` is elastic: a run that loses nodes goes on with the others, if at least that many are left. It
    also starts with that many if the others are not free within `wait_seconds` (default: 300). `max_nodes` is another
    name for the estimator's `node_count`.
    """

    def __str__(self) -> str:
        return "nccl"
