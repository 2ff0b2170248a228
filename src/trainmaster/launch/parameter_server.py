"""Parameter servers: one process per task of a TensorFlow cluster, each with its `TF_CONFIG`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainmaster.launch.command import command_line, log_name
from trainmaster.launch.plan import Launch, NodePlan, ProcessPlan
from trainmaster.launch.variables import hostfile_variables, process_variables, share_of_gpus
from trainmaster.shared.job_spec import JobSpec

# The user sets this variable to `chief` or `master`: the type of worker 0 in TF_CONFIG.
CHIEF = "TRAINMASTER_TF_CHIEF"


@dataclass(frozen=True)
class Task:
    """A task of the cluster, and its node."""

    kind: str
    index: int
    node: int


def plan_parameter_server(spec: JobSpec, launch: Launch) -> tuple[NodePlan, ...]:
    """Workers first, then servers, distributed to the nodes in turn."""
    tasks = place_tasks(spec)
    cluster = cluster_addresses(spec, launch, tasks)
    plans = []
    for node in range(spec.node_count):
        ranks = [rank for rank, task in enumerate(tasks) if task.node == node]
        workers = [rank for rank in ranks if tasks[rank].kind == "worker"]
        plans.append(NodePlan(node, tuple(_process(spec, launch, cluster, tasks, rank, workers) for rank in ranks)))
    return tuple(plans)


def place_tasks(spec: JobSpec) -> list[Task]:
    """The tasks by their ranks.

    v1's documentation has this example, three tasks on two nodes:

    >>> from trainmaster.shared.job_spec import Distribution
    >>> example = Distribution(kind="parameter_server", worker_count=2, parameter_server_count=1)
    >>> place_tasks(JobSpec("", "local", node_count=2, distribution=example))[2]
    Task(kind='ps', index=0, node=0)
    """
    distribution = spec.distribution
    tasks = [("worker", index) for index in range(distribution.worker_count)]
    tasks += [("ps", index) for index in range(distribution.parameter_server_count)]
    return [Task(kind, index, rank % spec.node_count) for rank, (kind, index) in enumerate(tasks)]


def cluster_addresses(spec: JobSpec, launch: Launch, tasks: Sequence[Task]) -> dict[str, list[str]]:
    """The cluster of `TF_CONFIG`."""
    cluster: dict[str, list[str]] = {"ps": [], "worker": []}
    for rank, task in enumerate(tasks):
        cluster[task.kind].append(f"{launch.hosts[task.node]}:{launch.ports[rank]}")
    if spec.environment_variables.get(CHIEF) == "chief":
        cluster = {"chief": cluster["worker"][:1], "ps": cluster["ps"], "worker": cluster["worker"][1:]}
    return {kind: hosts for kind, hosts in cluster.items() if hosts}


def task_config(spec: JobSpec, task: Task) -> dict[str, object]:
    """The task of `TF_CONFIG`. Worker 0 may be the chief; the numbers of the other workers then start at 0."""
    chief = spec.environment_variables.get(CHIEF, "")
    if task.kind == "worker" and chief:
        if task.index == 0:
            return {"type": chief, "index": 0}
        if chief == "chief":
            return {"type": "worker", "index": task.index - 1}
    return {"type": task.kind, "index": task.index}


def _process(
    spec: JobSpec,
    launch: Launch,
    cluster: Mapping[str, list[str]],
    tasks: Sequence[Task],
    rank: int,
    workers: Sequence[int],
) -> ProcessPlan:
    """The process of one task; `workers` are the ranks of all workers on its node."""
    task = tasks[rank]
    is_worker = task.kind == "worker"
    gpus = share_of_gpus(launch.gpus[task.node], workers.index(rank), len(workers)) if is_worker else ()
    config = {"cluster": cluster, "task": task_config(spec, task), "environment": "cloud"}
    variables = {
        **process_variables(spec, launch, rank=rank, node=task.node, gpus=gpus),
        **hostfile_variables(launch),
        "TF_CONFIG": json.dumps(config),
        "AZ_BATCHAI_TASK_TYPE": task.kind,
        "AZ_BATCHAI_TASK_INDEX": str(task.index),
        "AZ_BATCHAI_PS_HOSTS": ",".join(cluster.get("ps", [])),
        "AZ_BATCHAI_WORKER_HOSTS": ",".join(cluster.get("chief", []) + cluster.get("worker", [])),
        "AZ_BATCH_MASTER_NODE": f"{launch.hosts[0]}:{launch.ports[0]}",
    }
    return ProcessPlan(
        rank=rank,
        argv=command_line(spec, launch.python, variables),
        env=variables,
        cwd=launch.code_folder,
        log=f"{launch.log_folder}/{log_name(rank, len(tasks))}",
        service=task.kind == "ps" or _waits_for_coordinator(spec, task),
    )


def _waits_for_coordinator(spec: JobSpec, task: Task) -> bool:
    """Under a coordinator, workers are servers too: they never end by themselves."""
    return task.kind == "worker" and task.index > 0 and spec.environment_variables.get(CHIEF) == "chief"
