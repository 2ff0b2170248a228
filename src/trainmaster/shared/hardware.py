"""What this machine has."""

from __future__ import annotations

import os
import re
from functools import cache

from trainmaster.shared.records import TargetRecord


@cache
def gpus() -> tuple[str, ...]:
    """The indices of the NVIDIA GPUs here."""
    try:
        names = os.listdir("/dev")
    except OSError:
        return ()
    return tuple(sorted((name[6:] for name in names if re.fullmatch(r"nvidia\d+", name)), key=int))


def cpus() -> int:
    """How many CPUs this process may use."""
    return len(os.sched_getaffinity(0))


@cache
def local_target() -> TargetRecord:
    """The target `local`: one node for each GPU; without GPUs one for each CPU, two at least."""
    found = gpus()
    nodes = len(found) if found else max(2, cpus())
    return TargetRecord(
        name="local",
        engine="local",
        nodes=nodes,
        cpus_per_node=max(1, cpus() // nodes),
        gpus_per_node=1 if found else 0,
    )


def node_gpus(target: TargetRecord, node: int) -> tuple[str, ...]:
    """The GPUs of one node of a local target: the first node has the first ones, and they go round if they are few."""
    first = node * target.gpus_per_node
    indices = range(first, first + target.gpus_per_node)
    found = gpus()
    if target.gpus_per_node <= len(found):
        return tuple(found[index % len(found)] for index in indices)
    return tuple(found[index] if index < len(found) else str(index) for index in indices)
