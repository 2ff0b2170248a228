"""The limits of a target's nodes on this machine, and whether this machine can enforce them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from trainmaster.job.agent import cgroup
from trainmaster.job.agent.limits import CPU, MEMORY, Limits
from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.records import TargetRecord

LIMIT_CPUS, MEMORY_PER_NODE = "limit_cpus", "memory_per_node"
"""Options of a target."""
LEAST_MEMORY, MOST_MEMORY = 16 * 2**20, 2**48
"""A Python needs about as much to start."""


def limits_of(target: TargetRecord, nodes: int = 1, first_node: int = 0) -> Limits | None:
    """What the processes on so many nodes of a target may use together; None if there is no limit."""
    cpus = target.cpus_per_node if target.options.get(LIMIT_CPUS) else 0
    memory = target.options.get(MEMORY_PER_NODE) or 0
    if target.engine != "local" or not (cpus or memory):
        return None
    return Limits(cpus * nodes or None, memory * nodes or None, first_node * cpus)


def check_limits(options: Mapping[str, Any]) -> None:
    """Refuses limits that no node can have."""
    memory = options.get(MEMORY_PER_NODE)
    if memory is None:
        return
    is_whole = isinstance(memory, int) and not isinstance(memory, bool)
    if not is_whole or not LEAST_MEMORY <= memory <= MOST_MEMORY:
        raise ComputeTargetException(
            f"memory_per_node must be from {LEAST_MEMORY // 2**20} MB to {MOST_MEMORY // 2**40} TB, not {memory!r}",
            hint="Give bytes, or a text such as '8GB'.",
        )


def describe_limits(limits: Limits) -> str:
    """The limits of a node in words, with what enforces them here."""
    enforced = find_enforced(limits)
    parts = []
    if limits.cpus is not None:
        way = "cgroup" if CPU in enforced else "CPU affinity"
        parts.append(f"{limits.cpus} {'CPU' if limits.cpus == 1 else 'CPUs'} (by {way})")
    if limits.memory is not None:
        parts.append(f"{show_memory(limits.memory)} ({'by cgroup' if MEMORY in enforced else 'not enforced here'})")
    return ", ".join(parts) + " per node"


def find_enforced(limits: Limits) -> list[str]:
    """Which of the limits a cgroup of this machine enforces."""
    home = cgroup.find_home()
    return [] if home is None else cgroup.enable(home, limits.controllers)


def why_not(controller: str) -> str:
    """Why cgroups cannot enforce a limit here."""
    home = cgroup.find_home()
    if home is None:
        return "no writable cgroup v2"
    if controller not in cgroup.list_controllers(home):
        return f"the cgroup {home} does not have the controller '{controller}'"
    if cgroup.is_filled_by_systemd(home):
        unit, needed = os.path.basename(home), f"DelegateSubgroup={cgroup.PROGRAMS} (systemd 254)"
        return f"systemd could not restart {unit} while limited runs go on, unless it has {needed}"
    return f"other programs are in the cgroup {home}"


def find_broken(promise: str, results: Sequence[Mapping[str, Any] | None]) -> tuple[str, ...]:
    """Warnings about limits that a run was promised (`describe_limits`) and that the agents of its nodes could not set.

    >>> find_broken("1 CPU (by cgroup), 8 GB (by cgroup) per node", [{}, {"not_limited": ["memory"]}])
    ("node 1: the limit on memory was not enforced, because the agent could not set it for the node's cgroup",)
    >>> find_broken("1 CPU (by CPU affinity), 8 GB (not enforced here) per node", [{"not_limited": ["cpu", "memory"]}])
    ()
    """
    parts = [part for part in promise.split(", ") if "by cgroup" in part]
    promised = {CPU if " CPU" in part else MEMORY for part in parts}
    names = {CPU: "CPUs", MEMORY: "memory"}
    return tuple(
        f"node {node}: the limit on {names[each]} was not enforced, "
        "because the agent could not set it for the node's cgroup"
        for node, result in enumerate(results)
        for each in (result or {}).get("not_limited", ())
        if each in promised
    )


def show_memory(size: int) -> str:
    """
    >>> show_memory(8 * 2**30), show_memory(100 * 2**20)
    ('8 GB', '100 MB')
    """
    return f"{size / 2**30:g} GB" if size >= 2**30 else f"{size / 2**20:g} MB"
