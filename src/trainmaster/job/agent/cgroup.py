"""A cgroup (version 2) per node of a run: no process can fork its way out, and the kernel can kill all of it at once.

All of this is best effort. Where the machine has no writable cgroup, only the other ways of finding processes are used.
"""

import errno
import os

from trainmaster.job.agent.process import look, read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable

_PREFIX = "trainmaster-"
# The cgroup of Trainmaster's own programs, once cgroups of runs have limits. A run's has a number at its end. The units
# in deploy/ name it too.
PROGRAMS = _PREFIX + "programs"
# A process may be started while others are moved.
_TRIES = 5


def path_for(run_id: str, node: int) -> "str | None":
    """The path of the cgroup for this node of the run, or None if this process may not create it."""
    parent = find_home()
    return None if parent is None else os.path.join(parent, "{}{}-{}".format(_PREFIX, run_id, node))


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
    own, home = (_own_path() or "").split("/"), _home()
    if home is None or own[-1] == PROGRAMS or not any(_is_made_here(part) for part in own):
        return
    # Where runs have limits, the programs of Trainmaster have a cgroup of their own beside those of the runs.
    if not write(os.path.join(home, PROGRAMS, "cgroup.procs"), "0"):
        write(os.path.join(home, "cgroup.procs"), "0")


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


def find_home() -> "str | None":
    """The path of the cgroup in which cgroups of runs are made, or None if this process may not make any."""
    parent = _home()
    return parent if parent is not None and os.access(parent, os.W_OK) else None


def list_controllers(home: str) -> "list[str]":
    """What the kernel could limit below `home`."""
    return (read(os.path.join(home, "cgroup.controllers")) or b"").decode("ascii").split()


def enable(home: str, controllers: "Iterable[str]") -> "list[str]":
    """Lets cgroups below `home` have limits; returns those of the controllers that they can use.

    The kernel allows that only if no process is in `home` itself. If all of them are programs of Trainmaster, they get
    a cgroup of their own beside those of the runs. Others are not moved.
    """
    known = list_controllers(home)
    switch = os.path.join(home, "cgroup.subtree_control")
    wanted = [name for name in controllers if name in known]
    for _ in range(_TRIES):
        enabled = (read(switch) or b"").decode("ascii").split()
        missing = [name for name in wanted if name not in enabled]
        if not missing or is_filled_by_systemd(home):
            break
        if not write(switch, " ".join("+" + name for name in missing)) and not _move_programs(home):
            break
    return [name for name in wanted if name in (read(switch) or b"").decode("ascii").split()]


def _move_programs(home: str) -> bool:
    """Moves the processes of `home` into a cgroup below it; False if one of them is not ours or cannot be moved."""
    below = os.path.join(home, PROGRAMS)
    found = [int(line) for line in (read(os.path.join(home, "cgroup.procs")) or b"").split()]
    if not found or not all(_is_ours(pid) for pid in found) or not make(below):
        return False
    # One that has ended meanwhile cannot be moved, and need not be.
    return all(write(os.path.join(below, "cgroup.procs"), str(pid)) or look(pid) is None for pid in found)


def is_filled_by_systemd(home: str) -> bool:
    """Whether systemd starts the program of a service in `home` itself.

    It could not start it again while cgroups below have limits, because then no process may be in `home`. With
    `DelegateSubgroup=trainmaster-programs` (systemd 254) it starts the program below `home`.
    """
    return home.endswith(".service") and bool((read(os.path.join(home, "cgroup.procs")) or b"").split())


def _is_ours(pid: int) -> bool:
    """Whether a process is a program of Trainmaster, or was started by one.

    In a container, the first process (1) may be one. Where it is not, nothing can be said of its parent (0).
    """
    while pid > 0:
        if _names_us((read("/proc/{}/cmdline".format(pid)) or b"").split(b"\0")):
            return True
        found = look(pid)
        if found is None:
            return True
        pid = found.parent
    return False


def _names_us(arguments: "list[bytes]") -> bool:
    """Whether a command line is that of a program of Trainmaster. Any program may use a Python in a folder of our name.

    >>> _names_us([b"/opt/trainmaster/bin/python", b"-m", b"trainmaster.dispatcher"])
    True
    >>> _names_us([b"/opt/trainmaster/bin/python", b"-m", b"jupyterlab"])
    False
    """
    return os.path.basename(arguments[0]) == b"trainmaster" or any(b"trainmaster" in each for each in arguments[1:])


def kill(path: str) -> bool:
    """Kills all processes of the cgroup, however fast they fork; False where the kernel (before 5.14) cannot."""
    return write(os.path.join(path, "cgroup.kill"), "1")


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
        if _is_made_here(part):
            break
        if part == "..":
            # Outside of what the mount of this container shows.
            return None
        if part:
            parts.append(part)
    return os.path.join(mount, *parts)


def _is_made_here(name: str) -> bool:
    """Whether a cgroup belongs to a run or to the programs of Trainmaster. Units of systemd may begin like these.

    >>> _is_made_here("trainmaster-mnist_7-0"), _is_made_here("trainmaster-server.service")
    (True, False)
    """
    return name == PROGRAMS or (name.startswith(_PREFIX) and name.rpartition("-")[2].isdigit())


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


def write(path: str, text: str) -> bool:
    """Writes to a file of the kernel; False if that is not possible."""
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
