"""Decides which run gets which nodes, first come, first served, and what the others wait for. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from trainmaster.dispatcher.runs.gpus import find_gpus_used_elsewhere, gpus_of, has_gpus_here
from trainmaster.dispatcher.runs.quotas import QuotaBook, QuotaCheck, Use
from trainmaster.job.errors import ComputeTargetException
from trainmaster.launch import most_processes
from trainmaster.launch.variables import GPUS
from trainmaster.shared.hardware import node_gpus
from trainmaster.shared.job_spec import JobSpec
from trainmaster.shared.records import TargetRecord

MOST_PROCESSES = 1024
"""Processes of one run on one node."""


@dataclass(frozen=True)
class Request:
    """A run that wants nodes."""

    run_id: str
    target: str
    node_count: int
    seq: int = 0
    """The order of submission: smaller is earlier."""
    user: str = ""
    """Who submitted it."""


@dataclass(frozen=True)
class Decision:
    """Which runs start now on which nodes, and why the others wait."""

    starts: Mapping[str, tuple[int, ...]]
    reasons: Mapping[str, str]


# Kinds of targets that are known but cannot run jobs: reason and hint.
_NO_JOBS = {
    "services": ("runs services, not jobs", "Use an AmlCompute for training."),
    "hdinsight": ("is a Spark cluster, which is not supported", "Use an AmlCompute for training."),
    "kubernetes": ("is a Kubernetes cluster, which this release cannot use", "Use an AmlCompute for training."),
}


def check_takes_jobs(target: TargetRecord) -> None:
    """Refuses a target that cannot run jobs or is stopped."""
    if target.engine in _NO_JOBS:
        reason, hint = _NO_JOBS[target.engine]
        raise ComputeTargetException(f"target '{target.name}' {reason}", hint=hint)
    if target.options.get("stopped"):
        raise ComputeTargetException(
            f"target '{target.name}' is stopped", hint="Start it with ComputeTarget(workspace, name).start()."
        )


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


def decide(
    queue: Sequence[Request],
    held: Mapping[str, Mapping[str, tuple[int, ...]]],
    targets: Mapping[str, TargetRecord],
    queue_themselves: Collection[str] = (),
    quotas: QuotaBook | None = None,
    users: Mapping[str, str] | None = None,
) -> Decision:
    """Walks the queue in order; the first run that does not fit holds back those behind it on the same target.

    Targets may share the GPUs of this machine. A GPU is not given to a run if a run of another target uses it or has
    waited for it longer.

    `held` maps each target to its runs and their nodes, `users` each of these runs to its user. Targets in
    `queue_themselves` have their own queue: they get every run at once, up to the number of runs that they may have at
    a time (`max_jobs`). A run that a quota holds back does not hold back runs of others.
    """
    starts: dict[str, tuple[int, ...]] = {}
    reasons: dict[str, str] = {}
    holders = {name: dict(runs) for name, runs in held.items()}
    free_nodes: dict[str, list[int]] = {}
    blocked: dict[str, str] = {}
    ahead: dict[str, int] = {}
    waited_for: dict[str, dict[str, str]] = {}
    check = QuotaCheck(quotas, find_uses(held, targets, users or {})) if quotas and quotas.quotas else None
    for request in queue:
        here = holders.setdefault(request.target, {})
        target = targets.get(request.target)
        if target is None:
            reasons[request.run_id] = f"waiting for target '{request.target}', which does not exist any more"
            continue
        use = Use(request.user, request.node_count, request.node_count * target.gpus_per_node)
        reason = check.find_reason(use) if check else ""
        if reason:
            reasons[request.run_id] = reason
            continue
        if request.target in queue_themselves:
            most = target.options.get("max_jobs")
            if not most or len(here) < most:
                starts[request.run_id] = here[request.run_id] = tuple(range(request.node_count))
                if check:
                    check.add(use)
            else:
                reasons[request.run_id] = f"waiting: '{target.name}' is given {most} runs at a time"
            continue
        if request.target not in blocked:
            if request.target not in free_nodes:
                free_nodes[request.target] = _free(target.nodes, here.values())
            free = free_nodes[request.target]
            taken = _find_taken_gpus(target, holders, targets, waited_for)
            usable = [node for node in free if taken.keys().isdisjoint(node_gpus(target, node))] if taken else free
            if len(usable) >= request.node_count:
                nodes = starts[request.run_id] = here[request.run_id] = tuple(usable[: request.node_count])
                free_nodes[request.target] = [node for node in free if node not in nodes]
                if check:
                    check.add(use)
                continue
            is_full = len(free) < request.node_count
            blocked[request.target] = _reason(target, here, len(free)) if is_full else _gpu_reason(taken)
            waited_for[request.target] = dict.fromkeys(gpus_of(target), request.run_id)
        reasons[request.run_id] = _sentence(request, target, blocked[request.target], ahead.get(request.target, 0))
        ahead[request.target] = ahead.get(request.target, 0) + 1
    return Decision(starts, reasons)


def find_uses(
    held: Mapping[str, Mapping[str, tuple[int, ...]]], targets: Mapping[str, TargetRecord], users: Mapping[str, str]
) -> dict[str, Use]:
    """What each run that holds nodes counts for quotas. The GPUs are those of its nodes."""
    found: dict[str, Use] = {}
    for name, runs in held.items():
        gpus = targets[name].gpus_per_node if name in targets else 0
        for run_id, nodes in runs.items():
            found[run_id] = Use(users.get(run_id, ""), len(nodes), len(nodes) * gpus)
    return found


def _free(nodes: int, held: Iterable[tuple[int, ...]]) -> list[int]:
    taken = {node for nodes_of_run in held for node in nodes_of_run}
    return [node for node in range(nodes) if node not in taken]


def _find_taken_gpus(
    target: TargetRecord,
    holders: Mapping[str, Mapping[str, tuple[int, ...]]],
    targets: Mapping[str, TargetRecord],
    waited_for: Mapping[str, Mapping[str, str]],
) -> dict[str, str]:
    """GPU to the run of another target that uses it or waits for it and came first."""
    if not has_gpus_here(target):
        return {}
    waiting = {gpu: run for name, gpus in waited_for.items() if name != target.name for gpu, run in gpus.items()}
    return {**waiting, **find_gpus_used_elsewhere(target, holders, targets)}


def _gpu_reason(taken: Mapping[str, str]) -> str:
    names = sorted(set(taken.values()))
    words = ("run", "needs") if len(names) == 1 else ("runs", "need")
    return f"{words[0]} {_join_names(names)} of another target {words[1]} its GPUs"


def _join_names(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _reason(target: TargetRecord, here: Mapping[str, tuple[int, ...]], free: int) -> str:
    names = sorted(here)
    if not names:
        return f"'{target.name}' has only {target.nodes}"
    shown = _join_names(names)
    verb = "run {} holds {}" if len(names) == 1 else "runs {} hold {}"
    held = target.nodes - free
    return verb.format(shown, "it" if held == 1 and target.nodes == 1 else "them")


def _sentence(request: Request, target: TargetRecord, reason: str, ahead: int) -> str:
    nodes = "node" if target.nodes == 1 else "nodes"
    before = f" ({ahead} {'run' if ahead == 1 else 'runs'} ahead)" if ahead else ""
    return f"waiting for {request.node_count} of {target.nodes} {nodes} on '{target.name}': {reason}{before}"
