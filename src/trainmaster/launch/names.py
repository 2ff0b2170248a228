"""What the processes of a run are called when people read about them."""

from __future__ import annotations

from trainmaster.shared.job_spec import JobSpec


def rank_names(spec: JobSpec) -> tuple[str, ...]:
    """The name of each process, by its rank: tasks of a TensorFlow cluster have their own.

    >>> from trainmaster.shared.job_spec import Distribution
    >>> rank_names(JobSpec("", "local", node_count=2, distribution=Distribution("mpi", process_count_per_node=1)))
    ('rank 0', 'rank 1')
    >>> servers = Distribution("parameter_server", worker_count=2, parameter_server_count=1)
    >>> rank_names(JobSpec("", "local", node_count=2, distribution=servers))
    ('worker 0', 'worker 1', 'ps 0')
    """
    if spec.distribution.kind == "parameter_server":
        from trainmaster.launch.parameter_server import place, task_of

        tasks = (task_of(spec, kind, index) for kind, index, _ in place(spec))
        return tuple(f"{task['type']} {task['index']}" for task in tasks)
    return tuple(f"rank {rank}" for rank in range(_process_count(spec)))


def _process_count(spec: JobSpec) -> int:
    if spec.distribution.kind == "mpi":
        return spec.node_count * spec.distribution.process_count_per_node
    if spec.distribution.kind == "torch":
        return spec.distribution.process_count or spec.node_count
    return 1
