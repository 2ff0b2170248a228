"""How many processes, ports and agents a run has, and the names of its processes. Pure."""

from __future__ import annotations

from trainmaster.launch.parameter_server import place_tasks, task_config
from trainmaster.shared.job_spec import JobSpec


def most_processes(spec: JobSpec) -> int:
    """The most processes of the script on one node."""
    distribution = spec.distribution
    if distribution.kind == "mpi":
        return distribution.process_count_per_node
    if distribution.kind == "torch":
        return (distribution.process_count or spec.node_count) // spec.node_count
    if distribution.kind == "parameter_server":
        return -(-(distribution.worker_count + distribution.parameter_server_count) // spec.node_count)
    return 1


def port_count(spec: JobSpec) -> int:
    """How many ports the processes of a run need to reach each other."""
    if spec.distribution.kind == "parameter_server":
        return spec.distribution.worker_count + spec.distribution.parameter_server_count
    return 0 if spec.distribution.kind == "single" else 1


def agent_count(spec: JobSpec) -> int:
    """How many nodes have an agent: all, or only the first one under MPI, where mpirun reaches the others."""
    return 1 if spec.distribution.kind == "mpi" else spec.node_count


def rank_names(spec: JobSpec) -> tuple[str, ...]:
    """The name of each process for people, by its rank. Tasks of a TensorFlow cluster have names of their own.

    >>> from trainmaster.shared.job_spec import Distribution
    >>> rank_names(JobSpec("", "local", node_count=2, distribution=Distribution("mpi", process_count_per_node=1)))
    ('rank 0', 'rank 1')
    >>> servers = Distribution("parameter_server", worker_count=2, parameter_server_count=1)
    >>> rank_names(JobSpec("", "local", node_count=2, distribution=servers))
    ('worker 0', 'worker 1', 'ps 0')
    """
    if spec.distribution.kind == "parameter_server":
        tasks = (task_config(spec, task) for task in place_tasks(spec))
        return tuple(f"{task['type']} {task['index']}" for task in tasks)
    count = 1 if spec.distribution.kind == "single" else spec.node_count * most_processes(spec)
    return tuple(f"rank {rank}" for rank in range(count))
