"""Refuses jobs that can never run on a target. Pure."""

from __future__ import annotations

import math

from trainmaster.job.errors import ComputeTargetException
from trainmaster.launch import most_processes
from trainmaster.launch.variables import GPUS
from trainmaster.shared.job_spec import JobSpec
from trainmaster.shared.records import TargetRecord

MOST_PROCESSES = 1024
"""Processes of one run on one node."""


# Kinds of targets that are known but cannot run jobs: reason and hint.
_NO_JOBS = {
    "services": ("runs services, not jobs", "Use an AmlCompute for training."),
    "hdinsight": ("is a Spark cluster, which is not supported", "Use an AmlCompute for training."),
}
_ONLY_RECORDED = (
    "is only recorded: it names a cluster of Azure, and not how to reach it",
    "Create one with KubernetesCompute.configuration(...) or 'trainmaster compute create kubernetes'.",
)


def check_takes_jobs(target: TargetRecord) -> None:
    """Refuses a target that cannot run jobs or is stopped."""
    if target.engine in _NO_JOBS or is_only_recorded(target):
        reason, hint = _NO_JOBS.get(target.engine, _ONLY_RECORDED)
        raise ComputeTargetException(f"target '{target.name}' {reason}", hint=hint)
    if target.options.get("stopped"):
        raise ComputeTargetException(
            f"target '{target.name}' is stopped", hint="Start it with ComputeTarget(workspace, name).start()."
        )


def is_only_recorded(target: TargetRecord) -> bool:
    """Whether a Kubernetes target was only attached as in v1, which says nothing about how the cluster is reached."""
    return target.engine == "kubernetes" and target.nodes == 0


def check_fits(spec: JobSpec, target: TargetRecord) -> None:
    """Refuses a job that can never run on this target."""
    check_takes_jobs(target)
    if spec.node_count > target.nodes:
        raise ComputeTargetException(
            f"node_count={spec.node_count} can never fit: target '{target.name}' has {target.nodes} "
            f"{'node' if target.nodes == 1 else 'nodes'}",
            hint="Ask for fewer nodes, or create a larger target with "
            f"'trainmaster compute create NAME --nodes {spec.node_count}'.",
        )
    _check_processes(spec)
    _check_gpus(spec, target)


def _check_processes(spec: JobSpec) -> None:
    """A typing error must overload neither a machine nor the dispatcher, which plans every process."""
    wanted = most_processes(spec)
    if wanted > MOST_PROCESSES:
        raise ComputeTargetException(
            f"{wanted} processes on one node are too many: a run may have {MOST_PROCESSES}",
            hint="Ask for fewer, or spread them over more nodes.",
        )


def _check_gpus(spec: JobSpec, target: TargetRecord) -> None:
    """Each process that computes needs its own GPU, unless the user lets processes share.

    A target without GPUs, or with fewer GPUs than its vm_size had in Azure, only causes a warning, so that programs
    written for larger machines run here too.
    """
    wanted = computing_processes(spec)
    shares = spec.environment_variables.get(GPUS) == "node" or target.options.get("doubts")
    if not spec.use_gpu or not target.gpus_per_node or shares or wanted <= target.gpus_per_node:
        return
    raise ComputeTargetException(
        f"use_gpu=True with {wanted} processes per node needs {wanted} GPUs per node, but target '{target.name}' has "
        f"{target.gpus_per_node}",
        hint=f"Ask for {target.gpus_per_node} per node at most, create a larger target with "
        f"'trainmaster compute create NAME --gpus {wanted}', or let them share with "
        f"environment_variables={{'{GPUS}': 'node'}}.",
    )


def computing_processes(spec: JobSpec) -> int:
    """The largest number of computing processes on one node, not counting parameter servers."""
    if spec.distribution.kind == "parameter_server":
        return math.ceil(spec.distribution.worker_count / spec.node_count)
    return most_processes(spec)
