"""A cgroup (version 2) per node of a run: no process can fork its way out, and the kernel can kill all of it at once.

All of this is best effort. Where the machine has no writable cgroup, only the other ways of finding processes are used.
"""

import errno
import os

from trainmaster.job.agent.process import read

_PREFIX = "trainmaster-"


def path_for(run_id: str, node: int) -> "str | None":
    """The path of the cgroup for this node of the run, or None if this process may not create it."""
    parent = _home()
    if parent is None or not os.access(parent, os.W_OK):
        return None
    return os.path.join(parent, "{}{}-{}".format(_PREFIX, run_id, node))


def make(path: str) -> bool:
    """Creates the cgroup; False if that is not possible."""
    try:
        os.mkdir(path)
    except OSError as error:
        return error.errno == errno.EEXIST
    return True


def leave() -> None:
    """Moves this process out of the cgroup of the run that started it, if a run did.

    For a dispatcher that a script started, and for its agents: they must not end with the run of that script.
    """
    if "/" + _PREFIX in (_own_path() or ""):
        home = _home()
        if home is not None:
            _write(os.path.join(home, "cgroup.procs"), "0")


def pids(path: str) -> "list[int]":
    """The processes in the cgroup and in those below it."""
    found: "list[int]" = []
    for folder in _list_tree(path):
        found.extend(int(line) for line in (read(os.path.join(folder, "cgroup.procs")) or b"").split())
    return found


def is_populated(path: str) -> bool:
    """Whether a process lives in the cgroup or below. The kernel counts; forking cannot hide a process from it."""
    return b"populated 1" in (read(os.path.join(path, "cgroup.events")) or b"")


def memory_events(path: str) -> "bytes | None":
    """The kernel's memory counters of the nearest cgroup that has them: this one or one above it."""
    while "/" in path.rstrip("/"):
        counts = read(os.path.join(path, "memory.events"))
        # Folders above the mount have no counters, and a machine without the memory controller has none at all.
        if counts is not None or not os.path.exists(os.path.join(path, "cgroup.procs")):
            return counts
        path = os.path.dirname(path)
    return None


def find_own() -> "str | None":
    """The path of the cgroup that contains this process, or None."""
    mount, path = _mount(), _own_path()
    return None if mount is None or path is None else os.path.join(mount, path.strip("/"))


def kill(path: str) -> bool:
    """Kills all processes of the cgroup, however fast they fork; False where the kernel (before 5.14) cannot."""
    return _write(os.path.join(path, "cgroup.kill"), "1")


def remove(path: str) -> bool:
    """Removes the cgroup and those below it; False if one is still in use."""
    for folder in reversed(_list_tree(path)):
        try:
            os.rmdir(folder)
        except OSError as error:
            if error.errno != errno.ENOENT:
                return False
    return True


def _home() -> "str | None":
    """The path of the cgroup that contains this process or, if that belongs to a run, of the one above it."""
    mount, own = _mount(), _own_path()
    if mount is None or own is None:
        return None
    parts: "list[str]" = []
    for part in own.split("/"):
        if part.startswith(_PREFIX):
            break
        if part:
            parts.append(part)
    return os.path.join(mount, *parts)


def _mount() -> "str | None":
    for line in (read("/proc/mounts") or b"").decode("utf-8", "surrogateescape").splitlines():
        fields = line.split(" ")
        if len(fields) > 2 and fields[2] == "cgroup2":
            return fields[1]
    return None


def _own_path() -> "str | None":
    for line in (read("/proc/self/cgroup") or b"").decode("utf-8", "surrogateescape").splitlines():
        if line.startswith("0::"):
            return line[3:]
    return None


def _list_tree(path: str) -> "list[str]":
    """The cgroup and all below it, upper ones first."""
    found = [path]
    for folder in found:
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        # The names of the kernel's files begin with that of a controller; checking this saves a system call for each.
        found.extend(
            os.path.join(folder, name)
            for name in names
            if ("." not in name or not name.startswith(_KERNEL_FILES)) and os.path.isdir(os.path.join(folder, name))
        )
    return found


_KERNEL_FILES = (
    "cgroup.",
    "memory.",
    "cpu.",
    "cpuset.",
    "io.",
    "pids.",
    "hugetlb.",
    "misc.",
    "rdma.",
    "irq.",
)


def _write(path: str, text: str) -> bool:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.write(handle, text.encode("ascii"))
    except OSError:
        return False
    finally:
        os.close(handle)
    return True
