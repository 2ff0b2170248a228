"""A cgroup (version 2) per node of a run: nothing forks its way out of it, and the kernel ends it as a whole.

All of this is best effort: where the machine has no cgroup that may be written, there is none, and the other
ways of finding processes have to do.
"""

import errno
import os

from trainmaster.job.agent.process import read

_PREFIX = "trainmaster-"


def path_for(run_id, node):
    """Where the cgroup of this node of the run belongs, or None if this process may not make one."""
    mount, parts = _home()
    if mount is None:
        return None
    parent = os.path.join(mount, *parts)
    if not os.access(parent, os.W_OK):
        return None
    return os.path.join(parent, "{}{}-{}".format(_PREFIX, run_id, node))


def make(path):
    """Makes the cgroup; False if it cannot be had."""
    try:
        os.mkdir(path)
    except OSError as error:
        return error.errno == errno.EEXIST
    return True


def leave():
    """Takes this process out of the run's cgroup it was started in, if it was.

    For a dispatcher that a script started, and for its agents: they must not end with that script's run.
    """
    if "/" + _PREFIX in (_own_path() or ""):
        mount, parts = _home()
        if mount is not None:
            _put(os.path.join(mount, *parts, "cgroup.procs"), "0")


def pids(path):
    """The processes in the cgroup and in those below it."""
    found = []  # type: list[int]
    for folder in _with_below(path):
        found.extend(int(line) for line in (read(os.path.join(folder, "cgroup.procs")) or b"").split())
    return found


def is_populated(path):
    """Whether a process lives in the cgroup or below: the kernel's word, which no forking can outrun."""
    return b"populated 1" in (read(os.path.join(path, "cgroup.events")) or b"")


def memory_events(path):
    """What the kernel counts about memory in the nearest cgroup that has a count: this one or one above it."""
    while "/" in path.rstrip("/"):
        counts = read(os.path.join(path, "memory.events"))
        # Above the mount there is none; a machine without the memory controller has none at all.
        if counts is not None or not os.path.exists(os.path.join(path, "cgroup.procs")):
            return counts
        path = os.path.dirname(path)
    return None


def own():
    """The cgroup this process is in, or None."""
    mount, path = _mount(), _own_path()
    return None if mount is None or path is None else os.path.join(mount, path.strip("/"))


def kill(path):
    """SIGKILL for all of it at once, however fast it forks; False where the kernel (before 5.14) cannot."""
    return _put(os.path.join(path, "cgroup.kill"), "1")


def remove(path):
    """Removes the cgroup and those below it; False if one is still in use."""
    for folder in reversed(_with_below(path)):
        try:
            os.rmdir(folder)
        except OSError as error:
            if error.errno != errno.ENOENT:
                return False
    return True


def _home():
    """(mount point, folders below it) of the cgroup this process is in, or would be outside of any run's."""
    mount, own = _mount(), _own_path()
    if mount is None or own is None:
        return None, []
    parts = []
    for part in own.split("/"):
        if part.startswith(_PREFIX):
            break
        if part:
            parts.append(part)
    return mount, parts


def _mount():
    for line in (read("/proc/mounts") or b"").decode("utf-8", "surrogateescape").splitlines():
        fields = line.split(" ")
        if len(fields) > 2 and fields[2] == "cgroup2":
            return fields[1]
    return None


def _own_path():
    for line in (read("/proc/self/cgroup") or b"").decode("utf-8", "surrogateescape").splitlines():
        if line.startswith("0::"):
            return line[3:]
    return None


def _with_below(path):
    """The cgroup and all below it, upper ones first."""
    found = [path]
    for folder in found:
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        # The kernel's own files have a dot in their names; telling by name saves a system call for each.
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


def _put(path, text):
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
