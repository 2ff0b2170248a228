"""A compute target as commands print it."""

from __future__ import annotations

from typing import Any

from trainmaster.sdk.compute.target import ComputeTarget
from trainmaster.sdk.display.text import count_of
from trainmaster.shared.kubernetes_settings import UNLIMITED_NODES


def target_as_json(target: ComputeTarget) -> dict[str, Any]:
    """The keys of a target."""
    record, status = target.serialize(), target.occupancy()
    sizes = {key: record[key] for key in ("name", "engine", "nodes", "cpus_per_node", "gpus_per_node")}
    counts = {key: status[key] for key in ("busy", "idle", "waiting")}
    return {**sizes, **counts, "type": target.type, "vm_size": target.vm_size}


def describe_nodes(facts: dict[str, Any]) -> str:
    """How many nodes a target has, and how large they are.

    >>> describe_nodes({"engine": "local", "nodes": 2, "cpus_per_node": 8, "gpus_per_node": 1})
    '2 nodes with 8 CPUs and 1 GPU each'
    >>> describe_nodes({"engine": "kubernetes", "nodes": UNLIMITED_NODES, "cpus_per_node": 0, "gpus_per_node": 1})
    'as many nodes as the cluster gives, with 1 GPU each'
    """
    cpus, gpus = count_of(facts["cpus_per_node"], "CPU"), count_of(facts["gpus_per_node"], "GPU")
    if facts["engine"] != "kubernetes":
        return f"{count_of(facts['nodes'], 'node')} with {cpus} and {gpus} each"
    if not facts["nodes"]:
        return "no nodes: the cluster is only recorded"
    many = facts["nodes"] == UNLIMITED_NODES
    nodes = "as many nodes as the cluster gives" if many else f"at most {count_of(facts['nodes'], 'node')} for a run"
    # A pod without a request has what is left on its machine.
    share = [text for text, key in ((cpus, "cpus_per_node"), (gpus, "gpus_per_node")) if facts[key]]
    return f"{nodes}, with {' and '.join(share)} each" if share else nodes


def count_nodes(facts: dict[str, Any]) -> str:
    """How many nodes a target has, in a table."""
    many = facts["engine"] == "kubernetes" and facts["nodes"] == UNLIMITED_NODES
    return "any" if many else str(facts["nodes"])
