"""A compute target as commands print it."""

from __future__ import annotations

from typing import Any

from trainmaster.sdk.compute.target import ComputeTarget
from trainmaster.sdk.display.text import count_of


def target_as_json(target: ComputeTarget) -> dict[str, Any]:
    """The keys of a target."""
    record, status = target.serialize(), target.occupancy()
    sizes = {key: record[key] for key in ("name", "engine", "nodes", "cpus_per_node", "gpus_per_node")}
    counts = {key: status[key] for key in ("busy", "idle", "waiting")}
    return {**sizes, **counts, "type": target.type, "vm_size": target.vm_size}


def describe_nodes(facts: dict[str, Any]) -> str:
    """How many nodes a target has, and how large they are.

    >>> describe_nodes({"nodes": 2, "cpus_per_node": 8, "gpus_per_node": 1})
    '2 nodes with 8 CPUs and 1 GPU each'
    """
    share = f"{count_of(facts['cpus_per_node'], 'CPU')} and {count_of(facts['gpus_per_node'], 'GPU')}"
    return f"{count_of(facts['nodes'], 'node')} with {share} each"
