"""What launchers of other projects read: the hosts of a run with their processes, and variables to pass on. Pure.

The agents write the files, because only they know the names of hosts that a queue chose.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from trainmaster.launch.parameter_server import place_tasks
from trainmaster.launch.plan import Launch
from trainmaster.shared.job_spec import JobSpec


def plan_hostfile(spec: JobSpec, launch: Launch) -> dict[str, Any] | None:
    """The part of `plan.json` from which every agent writes both files; None for a run of one process."""
    if spec.distribution.kind == "single":
        return None
    slots = count_slots(spec)
    return {
        "folder": launch.node_folder,
        "hosts": [{"name": launch.hosts[node], "slots": slots[node]} for node in range(spec.node_count)],
        "env": {**launch.environment_variables, **spec.environment_variables, **launch.run_variables},
    }


def count_slots(spec: JobSpec) -> list[int]:
    """The number of processes on each node.

    >>> from trainmaster.shared.job_spec import Distribution
    >>> servers = Distribution("parameter_server", worker_count=2, parameter_server_count=1)
    >>> count_slots(JobSpec("", "local", node_count=2, distribution=servers))
    [2, 1]
    """
    distribution = spec.distribution
    if distribution.kind == "parameter_server":
        tasks = Counter(task.node for task in place_tasks(spec))
        return [tasks[node] for node in range(spec.node_count)]
    if distribution.kind == "torch":
        return [(distribution.process_count or spec.node_count) // spec.node_count] * spec.node_count
    return [distribution.process_count_per_node] * spec.node_count
