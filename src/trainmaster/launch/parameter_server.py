"""Parameter servers: one process per task of a TensorFlow cluster, each with its `TF_CONFIG`."""

from __future__ import annotations

import json

from trainmaster.launch.command import command_line, log_name
from trainmaster.launch.plan import Launch, NodePlan, ProcessPlan
from trainmaster.launch.variables import process_variables, share_of_gpus
from trainmaster.shared.job_spec import JobSpec

# Set by the user to `chief` or `master`: how worker 0 is announced to itself and the others.
CHIEF = "TRAINMASTER_TF_CHIEF"


def plan_parameter_server(spec: JobSpec, launch: Launch) -> tuple[NodePlan, ...]:
    """Workers first, then servers, dealt out to the nodes in turn."""
    placed = place(spec)
    cluster = addresses(spec, launch, placed)
    plans = []
    for node in range(spec.node_count):
        here = [rank for rank, (_, _, place) in enumerate(placed) if place == node]
        workers = [rank for rank in here if placed[rank][0] == "worker"]
        plans.append(NodePlan(node, tuple(_task(spec, launch, cluster, placed, rank, workers) for rank in here)))
    return tuple(plans)


def place(spec: JobSpec) -> list[tuple[str, int, int]]:
    """Each task by its rank: type, index, node.

    The documents' own example, three tasks on two nodes:

    >>> from trainmaster.shared.job_spec import Distribution
    >>> example = Distribution(kind="parameter_server", worker_count=2, parameter_server_count=1)
    >>> place(JobSpec("", "local", node_count=2, distribution=example))
    [('worker', 0, 0), ('worker', 1, 1), ('ps', 0, 0)]
    """
    distribution = spec.distribution
    tasks = [("worker", index) for index in range(distribution.worker_count)]
    tasks += [("ps", index) for index in range(distribution.parameter_server_count)]
    return [(kind, index, rank % spec.node_count) for rank, (kind, index) in enumerate(tasks)]


def addresses(spec: JobSpec, launch: Launch, placed: list[tuple[str, int, int]]) -> dict[str, list[str]]:
    """The cluster of `TF_CONFIG`."""
    cluster: dict[str, list[str]] = {"ps": [], "worker": []}
    for rank, (kind, _, node) in enumerate(placed):
        cluster[kind].append(f"{launch.hosts[node]}:{launch.ports[rank]}")
    if spec.environment_variables.get(CHIEF) == "chief":
        cluster = {"chief": cluster["worker"][:1], "ps": cluster["ps"], "worker": cluster["worker"][1:]}
    return {kind: hosts for kind, hosts in cluster.items() if hosts}


def task_of(spec: JobSpec, kind: str, index: int) -> dict[str, object]:
    """How a task is announced: worker 0 may be the chief, and the other workers then count from 0."""
    chief = spec.environment_variables.get(CHIEF, "")
    if kind == "worker" and chief:
        if index == 0:
            return {"type": chief, "index": 0}
        if chief == "chief":
            return {"type": "worker", "index": index - 1}
    return {"type": kind, "index": index}


def _task(
    spec: JobSpec,
    launch: Launch,
    cluster: dict[str, list[str]],
    placed: list[tuple[str, int, int]],
    rank: int,
    workers: list[int],
) -> ProcessPlan:
    kind, index, node = placed[rank]
    gpus = share_of_gpus(launch.gpus[node], workers.index(rank), len(workers)) if kind == "worker" else ()
    config = {"cluster": cluster, "task": task_of(spec, kind, index), "environment": "cloud"}
    variables = {
        **process_variables(spec, launch, rank=rank, node=node, gpus=gpus),
        "TF_CONFIG": json.dumps(config),
        "AZ_BATCHAI_TASK_TYPE": kind,
        "AZ_BATCHAI_TASK_INDEX": str(index),
        "AZ_BATCHAI_PS_HOSTS": ",".join(cluster.get("ps", [])),
        "AZ_BATCHAI_WORKER_HOSTS": ",".join(cluster.get("chief", []) + cluster.get("worker", [])),
        "AZ_BATCH_MASTER_NODE": f"{launch.hosts[0]}:{launch.ports[0]}",
    }
    return ProcessPlan(
        rank=rank,
        argv=command_line(spec, launch.python, variables),
        env=variables,
        cwd=launch.code_folder,
        log=f"{launch.log_folder}/{log_name(rank, len(placed))}",
        service=kind == "ps" or _serves(spec, kind, index),
    )


def _serves(spec: JobSpec, kind: str, index: int) -> bool:
    """Workers under a coordinator are servers too: they wait for its work for ever."""
    return kind == "worker" and index > 0 and spec.environment_variables.get(CHIEF) == "chief"
