"""How busy this machine is now, and which run uses how much of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from trainmaster.job.agent.process import read
from trainmaster.shared.hardware import cpus

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_GPU_SECONDS = 5.0
# Fields of /proc/<pid>/stat behind the closing bracket of the command.
_PARENT, _USER_TIME, _SYSTEM_TIME, _MEMORY = 1, 11, 12, 21


@dataclass(frozen=True)
class GpuUse:
    """How busy a GPU is."""

    index: int
    name: str
    percent: float | None
    memory_used: int | None
    memory_total: int | None


@dataclass(frozen=True)
class MachineUse:
    """How busy the machine of the workspace is. Sizes are in bytes."""

    host: str
    cpus: int
    cpu_percent: float
    """Of all CPUs together, since the last question or for a moment."""
    load: float
    """Processes that run or wait to run, on average over the last minute."""
    memory_total: int
    memory_used: int
    disk_total: int
    disk_free: int
    gpus: tuple[GpuUse, ...] = ()


@dataclass(frozen=True)
class RunUse:
    """How much of the machine the processes of a run use."""

    run_id: str
    cpu_percent: float
    """Of one CPU: a run that keeps two busy has 200."""
    memory: int
    """In bytes. Memory that processes share counts for each."""
    processes: int


@dataclass(frozen=True)
class WorkspaceUse:
    """The use of the machine that the workspace is on. Other machines are not measured."""

    machine: MachineUse
    runs: tuple[RunUse, ...]


@dataclass(frozen=True)
class _Process:
    pid: int
    parent: int
    seconds: float
    """Of processor time."""
    memory: int


@dataclass(frozen=True)
class Sample:
    """What was read at one moment."""

    at: float
    busy: float
    idle: float
    processes: Mapping[int, _Process]


def take_sample() -> Sample:
    """Read the state of the machine and of all its processes."""
    busy, idle = parse_cpu_times((read("/proc/stat") or b"").decode("ascii", "replace"))
    found = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            process = parse_process(int(name), read(f"/proc/{name}/stat") or b"")
            if process is not None:
                found[process.pid] = process
    return Sample(time.monotonic(), busy, idle, found)


def parse_cpu_times(text: str) -> tuple[float, float]:
    """Busy and idle time of all CPUs, in /proc/stat.

    >>> parse_cpu_times("cpu  10 0 20 60 10 0 0 0 0 0\\n")
    (30.0, 70.0)
    """
    numbers = [float(word) for word in text.partition("\n")[0].split()[1:9]]
    if len(numbers) < 5:
        return 0.0, 0.0
    idle = numbers[3] + numbers[4]
    return sum(numbers) - idle, idle


def parse_process(pid: int, stat: bytes) -> _Process | None:
    """A process from its /proc/<pid>/stat; None if it has just ended."""
    fields = stat.rpartition(b")")[2].split()
    if len(fields) <= _MEMORY:
        return None
    seconds = (int(fields[_USER_TIME]) + int(fields[_SYSTEM_TIME])) / _TICKS
    return _Process(pid, int(fields[_PARENT]), seconds, int(fields[_MEMORY]) * _PAGE)


def measure_runs(before: Sample, now: Sample, agents: Mapping[str, Sequence[int]]) -> tuple[RunUse, ...]:
    """What the descendants of the agents of each run used between two samples."""
    children: dict[int, list[int]] = {}
    for process in now.processes.values():
        children.setdefault(process.parent, []).append(process.pid)
    span = max(now.at - before.at, 1e-3)
    found = []
    for run_id, pids in agents.items():
        members = [now.processes[pid] for pid in _find_descendants(pids, children) if pid in now.processes]
        earlier = (before.processes.get(each.pid) for each in members)
        used = sum(
            max(0.0, each.seconds - (old.seconds if old else 0.0)) for each, old in zip(members, earlier, strict=True)
        )
        percent = round(100 * used / span, 1)
        found.append(RunUse(run_id, percent, sum(each.memory for each in members), len(members)))
    return tuple(found)


def _find_descendants(pids: Iterable[int], children: Mapping[int, Sequence[int]]) -> set[int]:
    found: set[int] = set()
    wanted = list(pids)
    while wanted:
        pid = wanted.pop()
        if pid not in found:
            found.add(pid)
            wanted += children.get(pid, ())
    return found


def measure_machine(before: Sample, now: Sample, folder: str) -> MachineUse:
    """How busy the machine was between two samples; `folder` is on the disk that is measured."""
    busy, idle = now.busy - before.busy, now.idle - before.idle
    total, available = parse_memory((read("/proc/meminfo") or b"").decode("ascii", "replace"))
    disk = shutil.disk_usage(folder)
    return MachineUse(
        os.uname().nodename,
        cpus(),
        round(100 * busy / (busy + idle), 1) if busy + idle > 0 else 0.0,
        round(os.getloadavg()[0], 2),
        total,
        total - available,
        disk.total,
        disk.free,
        ask_gpus(),
    )


def parse_memory(text: str) -> tuple[int, int]:
    """The whole memory and what is available of it, in /proc/meminfo.

    >>> parse_memory("MemTotal:  100 kB\\nMemAvailable:  40 kB\\n")
    (102400, 40960)
    """
    found = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if words and words[0].isdecimal():
            found[name] = int(words[0]) * 1024
    return found.get("MemTotal", 0), found.get("MemAvailable", 0)


def ask_gpus() -> tuple[GpuUse, ...]:
    """The GPUs that nvidia-smi knows; none without it."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ()
    query = "--query-gpu=index,name,utilization.gpu,memory.used,memory.total"
    try:
        done = subprocess.run(
            [program, query, "--format=csv,noheader,nounits"], capture_output=True, timeout=_GPU_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return parse_gpus(done.stdout.decode("utf-8", "replace")) if done.returncode == 0 else ()


def parse_gpus(text: str) -> tuple[GpuUse, ...]:
    """The answer of nvidia-smi.

    >>> parse_gpus("0, NVIDIA A100, 37, 1024, 40960\\n1, NVIDIA A100, [N/A], 0, 40960\\n")[0].percent
    37.0
    """
    found = []
    for line in text.splitlines():
        parts = [part.strip() for part in line.split(",")]
        if len(parts) == 5 and parts[0].isdecimal():
            percent, used, total = (float(part) if part.isdecimal() else None for part in parts[2:])
            sizes = [None if size is None else int(size) << 20 for size in (used, total)]
            found.append(GpuUse(int(parts[0]), parts[1], percent, *sizes))
    return tuple(found)
