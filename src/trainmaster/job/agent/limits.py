"""Limits of one node: how many CPUs and how much memory its processes may use together.

cgroup     the kernel holds all processes of the node to both (version 2, with the controllers `cpu` and `memory`)
affinity   without it: the processes run on so many CPUs only. There is no such way to limit memory.
"""

import os

from trainmaster.job.agent import cgroup as cgroups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable

CPU, MEMORY = "cpu", "memory"
_PERIOD = 100000


class Limits(object):
    """What the processes of one node may use; None for no limit."""

    def __init__(self, cpus: "int | None", memory: "int | None", first_cpu: int = 0) -> None:
        self.cpus = cpus
        self.memory = memory
        # Where the CPUs of the node begin, if its processes are held to certain ones.
        self.first_cpu = first_cpu

    @property
    def controllers(self) -> "list[str]":
        """The controllers that these limits need."""
        wanted = ((CPU, self.cpus), (MEMORY, self.memory))
        return [name for name, limit in wanted if limit is not None]


def set_limits(path: str, limits: Limits) -> "list[str]":
    """Limits the cgroup `path`; returns the controllers that could not be limited."""
    usable = cgroups.enable(os.path.dirname(path), limits.controllers)
    missing = [name for name in limits.controllers if name not in usable]
    if CPU in usable and not cgroups.write(os.path.join(path, "cpu.max"), cpu_quota(limits.cpus or 1)):
        missing.append(CPU)
    if MEMORY in usable and not _limit_memory(path, limits.memory or 0):
        missing.append(MEMORY)
    return missing


def cpu_quota(cpus: int) -> str:
    """What `cpu.max` of so many CPUs is.

    >>> cpu_quota(2)
    '200000 100000'
    """
    return "{} {}".format(cpus * _PERIOD, _PERIOD)


def choose_cpus(usable: "Iterable[int]", first: int, count: int) -> "list[int]":
    """The CPUs of a node, if its processes are held to certain ones: nodes have different ones as long as there are.

    >>> choose_cpus([0, 1, 2, 3], 2, 2), choose_cpus([0, 1, 2, 3], 6, 3), choose_cpus([4, 7], 0, 3)
    ([2, 3], [0, 2, 3], [4, 7])
    """
    known = sorted(usable)
    return sorted({known[(first + number) % len(known)] for number in range(min(count, len(known)))})


def _limit_memory(path: str, size: int) -> bool:
    # Without swap, else the limit would only move the processes there.
    cgroups.write(os.path.join(path, "memory.swap.max"), "0")
    return cgroups.write(os.path.join(path, "memory.max"), str(size))
