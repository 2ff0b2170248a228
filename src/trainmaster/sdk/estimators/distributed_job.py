"""The distribution of a job in the terms of a run configuration: MPI, TensorFlow and PyTorch."""

from __future__ import annotations

from typing import Any

from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.estimators import not_yet
from trainmaster.sdk.estimators.values import count, server_count

_BACKENDS = {"nccl": "Nccl", "gloo": "Gloo"}


class MpiConfiguration:
    """Open MPI with `process_count_per_node` processes on each node. An estimator's node_count takes precedence."""

    def __init__(self, process_count_per_node: int = 1, node_count: int = 1) -> None:
        self.process_count_per_node = count("process_count_per_node", process_count_per_node)
        self.node_count = count("node_count", node_count)


class TensorflowConfiguration:
    """TensorFlow workers and parameter servers (0 for none). A ScriptRunConfig has as many nodes as workers."""

    def __init__(self, worker_count: int = 1, parameter_server_count: int = 1) -> None:
        self.worker_count = count("worker_count", worker_count)
        self.parameter_server_count = server_count("parameter_server_count", parameter_server_count)


class PyTorchConfiguration:
    """Native PyTorch with `process_count` processes in total (default: one per node).

    With `min_nodes` the run is elastic: if it loses nodes, it goes on with the others, as long as that many are left.
    It also starts with that many if the others are not free within `wait_seconds` (default: 300).
    """

    def __init__(
        self,
        communication_backend: str = "Nccl",
        process_count: int | None = None,
        node_count: int = 1,
        min_nodes: int | None = None,
        wait_seconds: int | None = None,
    ) -> None:
        self.communication_backend = torch_backend(communication_backend)
        self.process_count = None if process_count is None else count("process_count", process_count)
        self.node_count = count("node_count", node_count)
        self.min_nodes = None if min_nodes is None else count("min_nodes", min_nodes)
        self.wait_seconds = None if wait_seconds is None else count("wait_seconds", wait_seconds, least=0)


class ParallelTaskConfiguration:
    """v1's parallel tasks, which are not supported."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        not_yet.parallel_task()


def torch_backend(given: Any) -> str:
    """The name of a PyTorch backend, in v1's spelling."""
    found = _BACKENDS.get(given.lower()) if isinstance(given, str) else None
    if found is None:
        raise UserErrorException(f"communication_backend must be 'Nccl' or 'Gloo', not {given!r}")
    return found
