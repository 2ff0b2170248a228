"""The distribution of a run: from the user's settings to the run configuration, and to the job's Distribution."""

from __future__ import annotations

from typing import Any

from trainmaster.job.errors import RunConfigurationException
from trainmaster.sdk.estimators import not_yet, values
from trainmaster.sdk.estimators.distributed_job import (
    MpiConfiguration,
    PyTorchConfiguration,
    TensorflowConfiguration,
    torch_backend,
)
from trainmaster.sdk.estimators.distributed_training import Gloo, Mpi, Nccl, ParameterServer
from trainmaster.sdk.estimators.run_configuration import RunConfiguration
from trainmaster.shared.job_spec import WAIT_SECONDS, Distribution

_MPI = ("mpi", "openmpi", "intelmpi")


def record(config: RunConfiguration, training: Any) -> None:
    """Writes `training` to its section of `config`, with v1's names for framework and communicator."""
    match training:
        case Mpi():
            config.mpi = MpiConfiguration(training.process_count_per_node)
            config.framework, config.communicator = "python", "Mpi"
        case MpiConfiguration():
            config.mpi = training
            config.framework, config.communicator = "python", "Mpi"
        case ParameterServer():
            config.tensorflow = TensorflowConfiguration(training.worker_count, training.parameter_server_count)
            config.framework, config.communicator = "TensorFlow", "ParameterServer"
        case TensorflowConfiguration():
            config.tensorflow = training
            config.framework, config.communicator = "TensorFlow", "ParameterServer"
        case Gloo() | Nccl():
            config.node_count = _most_nodes(config.node_count, training.max_nodes)
            config.pytorch = PyTorchConfiguration(
                str(training), min_nodes=training.min_nodes, wait_seconds=training.wait_seconds
            )
            config.framework, config.communicator = "pytorch", config.pytorch.communication_backend
        case PyTorchConfiguration():
            config.pytorch = training
            config.framework = "PyTorch"
            config.communicator = torch_backend(training.communication_backend)


def _most_nodes(node_count: int, max_nodes: int | None) -> int:
    """The node_count of an estimator, for which max_nodes of its distribution is another name. Its default is 1."""
    if max_nodes is None or node_count == max_nodes:
        return node_count
    if node_count != 1:
        raise RunConfigurationException(
            f"max_nodes={max_nodes} is not node_count={node_count}",
            hint="They are two names for the most nodes that the run uses. Give one of them.",
        )
    return max_nodes


def node_count_of(config: RunConfiguration) -> int:
    """The number of nodes that `config` requests."""
    older = getattr(config.batchai, "node_count", None)
    if older is not None:
        return values.count("batchai.node_count", older)
    return values.count("node_count", config.node_count)


def distribution_of(config: RunConfiguration) -> Distribution:
    """The Distribution that `config` describes when it is submitted."""
    if values.text("framework", config.framework).lower() == "pyspark":
        not_yet.spark(config.framework)
    communicator = values.text("communicator", config.communicator).lower()
    per_node = values.count("mpi.process_count_per_node", _read_field("mpi", config.mpi, "process_count_per_node"))
    if communicator == "none":
        return _single(node_count_of(config), per_node)
    if communicator in _MPI:
        return Distribution(kind="mpi", process_count_per_node=per_node)
    if communicator == "parameterserver":
        return _parameter_server(config.tensorflow)
    if communicator in ("gloo", "nccl"):
        return _torch(communicator, config, per_node)
    raise RunConfigurationException(
        f"communicator {config.communicator!r} is not supported",
        hint="Use None, Mpi, OpenMpi, IntelMpi, ParameterServer, Gloo or Nccl.",
    )


def _read_field(section: str, value: Any, field: str) -> Any:
    # Programs assign whole sections, so their type is checked here.
    if not hasattr(value, field):
        raise RunConfigurationException(
            f"{section} of the run configuration has no {field}: it is a {type(value).__name__}",
            hint="Set the fields of the section, or assign an object of its own class.",
        )
    return getattr(value, field)


def _single(nodes: int, per_node: int) -> Distribution:
    if nodes > 1 or per_node > 1:
        raise RunConfigurationException(
            f"node_count={nodes} and process_count_per_node={per_node} need a communicator",
            hint="Give distributed_job_config=MpiConfiguration(...), or set communicator='OpenMpi'.",
        )
    return Distribution()


def _parameter_server(config: TensorflowConfiguration) -> Distribution:
    servers = _read_field("tensorflow", config, "parameter_server_count")
    return Distribution(
        kind="parameter_server",
        worker_count=values.count("worker_count", _read_field("tensorflow", config, "worker_count")),
        parameter_server_count=values.server_count("parameter_server_count", servers),
    )


def _torch(backend: str, config: RunConfiguration, per_node: int) -> Distribution:
    total = _read_field("pytorch", config.pytorch, "process_count")
    nodes = node_count_of(config)
    if total is not None:
        total = values.count("process_count", total)
        if total % nodes:
            raise RunConfigurationException(
                f"process_count={total} cannot be divided equally between node_count={nodes} nodes",
                hint=f"Use a multiple of {nodes}.",
            )
    elif per_node > 1:
        # v1 used process_count_per_node for MPI only. Here it applies to every distribution of an estimator.
        total = per_node * nodes
    least, seconds = _min_nodes(config, nodes), getattr(config.pytorch, "wait_seconds", None)
    if seconds is not None and least is None:
        raise RunConfigurationException(
            f"wait_seconds={seconds} needs min_nodes", hint="Without it the run always waits for all its nodes."
        )
    seconds = WAIT_SECONDS if seconds is None else values.count("wait_seconds", seconds, least=0)
    return Distribution(kind="torch", backend=backend, process_count=total, min_nodes=least, wait_seconds=seconds)


def _min_nodes(config: RunConfiguration, nodes: int) -> int | None:
    least = getattr(config.pytorch, "min_nodes", None)
    if least is None:
        return None
    if values.count("min_nodes", least) > nodes:
        raise RunConfigurationException(
            f"min_nodes={least} is more than node_count={nodes}",
            hint="node_count is the most nodes that the run uses.",
        )
    return int(least)
