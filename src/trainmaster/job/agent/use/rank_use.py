"""What the processes of each rank use, read from /proc.

A process belongs to the rank that its parent belongs to. Under a launcher, and in containers, its variables say so.
Other processes are looked at once and then ignored, so the cost does not depend on what else the machine does.
"""

import os

from trainmaster.job.agent.process import read
from trainmaster.job.agent.use.units import GB, MB

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, Mapping

    # By name of the metric, then by rank.
    Values = dict[str, dict[int, float]]

_TICKS = float(os.sysconf("SC_CLK_TCK"))
_PAGE = os.sysconf("SC_PAGE_SIZE")
# Fields of /proc/<pid>/stat behind the closing bracket of the command.
_PARENT, _SESSION, _TIMES, _START_TIME, _MEMORY = 1, 3, slice(11, 15), 19, 21
_LOOKS = 3
# By which a process says which rank it belongs to: our variable, and Open MPI's.
_RANK_VARIABLES = (b"TRAINMASTER_RANK=", b"OMPI_COMM_WORLD_RANK=")


class _Process(object):
    """A process as it was at one moment."""

    __slots__ = ("cpu", "memory", "parent", "pid", "session", "start_time")

    def __init__(self, pid: int, fields: "list[bytes]") -> None:
        self.pid = pid
        self.parent = int(fields[_PARENT])
        self.session = int(fields[_SESSION])
        self.start_time = fields[_START_TIME]
        # With the time of children that have ended, so that it does not get lost.
        self.cpu = sum(map(int, fields[_TIMES])) / _TICKS
        self.memory = int(fields[_MEMORY]) * _PAGE


class RankUse(object):
    """Measures the ranks whose first processes are `pids`, by rank.

    `agent` is the process that started them, and adopts their orphans. With `marker`, such as
    `TRAINMASTER_AGENT=run/0`, the ranks are found by the variables of processes instead.
    """

    def __init__(self, pids: "Mapping[int, int]", agent: int, marker: "bytes | None" = None) -> None:
        self._roots = {pid: rank for rank, pid in pids.items()}
        self._only_rank = next(iter(pids)) if len(pids) == 1 else None
        self._agent = agent
        self._marker = marker
        self._owners: "dict[int, tuple[bytes, int]]" = {}
        self._others: "set[int]" = {agent, os.getpid()}
        self._doubts: "dict[int, int]" = {}
        # Processor time, bytes read and bytes written up to the last measurement, and its time.
        self._before: "dict[int, tuple[float, int, int]]" = {}
        self._measured_at: "float | None" = None

    def measure(self, now: float, since_start: float) -> "Values":
        """What each rank uses now, and on average since the last call or the start, `since_start` seconds ago."""
        seconds = since_start if self._measured_at is None else now - self._measured_at
        self._measured_at = now
        totals = self._add_up(self._find())
        found: "Values" = {}
        for rank, (cpu, memory, count, read_bytes, written) in totals.items():
            old_cpu, old_read, old_written = self._before.get(rank, (0.0, 0, 0))
            self._before[rank] = (cpu, read_bytes, written)
            found.setdefault("cpu_percent", {})[rank] = round(100 * max(0.0, cpu - old_cpu) / seconds, 1)
            found.setdefault("memory_gb", {})[rank] = round(memory / GB, 4)
            found.setdefault("processes", {})[rank] = count
            rates = (("disk_read", read_bytes - old_read), ("disk_write", written - old_written))
            for name, difference in rates:
                found.setdefault(name + "_mb_per_s", {})[rank] = round(max(0, difference) / MB / seconds, 3)
        return found

    def _add_up(self, processes: "Iterable[tuple[int, _Process]]") -> "dict[int, tuple[float, int, int, int, int]]":
        totals: "dict[int, tuple[float, int, int, int, int]]" = {}
        for rank, one in processes:
            cpu, memory, count, read_bytes, written = totals.get(rank, (0.0, 0, 0, 0, 0))
            read_more, written_more = parse_io(read("/proc/{}/io".format(one.pid)) or b"")
            totals[rank] = (
                cpu + one.cpu,
                memory + one.memory,
                count + 1,
                read_bytes + read_more,
                written + written_more,
            )
        return totals

    def _find(self) -> "list[tuple[int, _Process]]":
        """The processes of ranks, each with its rank."""
        pids = {int(name) for name in os.listdir("/proc") if name[0] in "123456789" and name.isdigit()}
        self._others &= pids
        self._doubts = {pid: looks for pid, looks in self._doubts.items() if pid in pids}
        table = {}
        for pid in pids - self._others:
            fields = (read("/proc/{}/stat".format(pid)) or b"").rpartition(b")")[2].split()
            if len(fields) > _MEMORY:
                table[pid] = _Process(pid, fields)
        found, owners = [], {}
        for pid, one in table.items():
            rank = self._rank_of(one, table)
            if rank is None:
                self._ignore(pid)
            else:
                owners[pid] = (one.start_time, rank)
                found.append((rank, one))
        self._owners = owners
        return found

    def _ignore(self, pid: int) -> None:
        """A process that starts in a container gets its variables a moment later, so it is looked at a few times."""
        looks = self._doubts.pop(pid, 0) + 1
        if self._marker is None or looks >= _LOOKS:
            self._others.add(pid)
        else:
            self._doubts[pid] = looks

    def _rank_of(self, one: "_Process", table: "dict[int, _Process]") -> "int | None":
        # Upwards until a process is known. Each one is the child of a process that started before it.
        seen = one
        for _ in range(len(table)):
            start_time, rank = self._owners.get(seen.pid, (b"", -1))
            if start_time == seen.start_time:
                return rank
            own = self._own_rank(seen)
            if own is not None:
                return own
            if seen.parent not in table:
                break
            seen = table[seen.parent]
        # An orphan: the agent has adopted it. Its session may tell whose it was.
        if seen.parent != self._agent or self._marker is not None:
            return None
        return self._roots.get(seen.session, self._only_rank)

    def _own_rank(self, one: "_Process") -> "int | None":
        if self._marker is None:
            return self._roots.get(one.pid)
        return parse_rank(read("/proc/{}/environ".format(one.pid)) or b"", self._marker)


def parse_io(text: bytes) -> "tuple[int, int]":
    """The bytes that a process read from disks and wrote to them, from /proc/<pid>/io.

    >>> parse_io(b"rchar: 5\\nread_bytes: 4096\\nwrite_bytes: 8192\\ncancelled_write_bytes: 0\\n")
    (4096, 8192)
    """
    numbers = {b"read_bytes": 0, b"write_bytes": 0}
    for line in text.split(b"\n"):
        name, _, value = line.partition(b": ")
        if name in numbers:
            numbers[name] = int(value)
    return numbers[b"read_bytes"], numbers[b"write_bytes"]


def parse_rank(variables: bytes, marker: bytes) -> "int | None":
    """The rank in the variables of a process of this node; None for other processes.

    >>> parse_rank(b"HOME=/\\0TRAINMASTER_AGENT=run/0\\0TRAINMASTER_RANK=3\\0", b"TRAINMASTER_AGENT=run/0")
    3
    >>> parse_rank(b"TRAINMASTER_RANK=3\\0", b"TRAINMASTER_AGENT=run/0")
    """
    entries = variables.split(b"\0")
    if marker not in entries:
        return None
    for entry in entries:
        for prefix in _RANK_VARIABLES:
            if entry.startswith(prefix) and entry[len(prefix) :].isdigit():
                return int(entry[len(prefix) :])
    return None
