"""GPUs belong to the machine, not to a target: which of them runs of other targets use."""

from __future__ import annotations

from collections.abc import Mapping

from trainmaster.shared.hardware import node_gpus
from trainmaster.shared.records import TargetRecord


def has_gpus_here(target: TargetRecord) -> bool:
    """Whether the nodes of a target have GPUs of this machine."""
    return target.engine == "local" and target.gpus_per_node > 0


def find_gpus_used_elsewhere(
    target: TargetRecord, held: Mapping[str, Mapping[str, tuple[int, ...]]], targets: Mapping[str, TargetRecord]
) -> dict[str, str]:
    """GPU to the run of another target that uses it. (Nodes of the same target may share GPUs.)"""
    if not has_gpus_here(target):
        return {}
    found: dict[str, str] = {}
    for name, runs in held.items():
        other = targets.get(name)
        if other is None or other.name == target.name or not has_gpus_here(other):
            continue
        for run_id, nodes in runs.items():
            found.update({gpu: run_id for node in nodes for gpu in node_gpus(other, node)})
    return found


def gpus_of(target: TargetRecord) -> set[str]:
    """All GPUs of this machine that the nodes of a target have."""
    if not has_gpus_here(target):
        return set()
    return {gpu for node in range(target.nodes) for gpu in node_gpus(target, node)}
