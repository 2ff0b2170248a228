"""How much memory a process may have: the limits of the machine, of its cgroups, and of its address space."""

from trainmaster.job.agent.process import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator

# What a limit applies to.
MACHINE, CGROUP, ADDRESS_SPACE = "machine", "cgroup", "address space"
# The first version of cgroups writes an absurd number where there is no limit.
_NO_LIMIT = 1 << 60
_ADDRESS_SPACE = b"Max address space"


def find_limit(pid: int) -> "tuple[int, str] | None":
    """The smallest limit on the memory of a process in bytes, and what it applies to; None if that is unknown.

    Also answers about a process that has ended but is not yet reaped.
    """
    limits = [(limit, CGROUP) for limit in _cgroup_limits(pid)]
    total = parse_total(read("/proc/meminfo") or b"")
    if total:
        limits.append((total, MACHINE))
    space = parse_address_space(read("/proc/{}/limits".format(pid)) or b"")
    if space is not None:
        limits.append((space, ADDRESS_SPACE))
    return min(limits) if limits else None


def parse_total(text: bytes) -> int:
    """The memory of the machine in bytes, from /proc/meminfo.

    >>> parse_total(b"MemTotal:  100 kB\\nMemFree: 1 kB\\n")
    102400
    """
    words = text.partition(b"\n")[0].split()
    return int(words[1]) * 1024 if len(words) > 1 and words[0] == b"MemTotal:" else 0


def parse_address_space(text: bytes) -> "int | None":
    """The limit on the address space (`ulimit -v`), from /proc/<pid>/limits.

    >>> parse_address_space(b"Max cpu time  unlimited  unlimited  seconds\\nMax address space  4096  8192  bytes\\n")
    4096
    """
    for line in text.splitlines():
        if line.startswith(_ADDRESS_SPACE):
            words = line[len(_ADDRESS_SPACE) :].split()
            return int(words[0]) if words and words[0].isdigit() else None
    return None


def _cgroup_limits(pid: int) -> "Iterator[int]":
    """The limits of the cgroup that has the process, and of all above it. In a container, the mount is its cgroup.

    The first version of cgroups has forgotten that of a process that has ended. Then it is that of this process.
    """
    mounts = (read("/proc/mounts") or b"").decode("utf-8", "surrogateescape")
    both = (read("/proc/{}/cgroup".format(pid)) or b"") + (read("/proc/self/cgroup") or b"")
    groups = both.decode("utf-8", "surrogateescape")
    for top, path, name in find_groups(mounts, groups):
        parts = path.split("/")
        for count in range(len(parts), 0, -1):
            text = (read("{}{}/{}".format(top, "/".join(parts[:count]), name)) or b"").strip()
            if text.isdigit() and int(text) < _NO_LIMIT:
                yield int(text)


def find_groups(mounts: str, groups: str) -> "list[tuple[str, str, str]]":
    """Where the cgroups of a process are that may limit its memory: mount, path below it, and name of the file.

    >>> find_groups("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0", "0::/user.slice/run-1")
    [('/sys/fs/cgroup', '/user.slice/run-1', 'memory.max')]
    >>> find_groups("cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0", "4:memory:/jobs\\n1:cpu:/")
    [('/sys/fs/cgroup/memory', '/jobs', 'memory.limit_in_bytes')]
    """
    found = []
    paths = [line.split(":", 2) for line in groups.splitlines() if line.count(":") >= 2]
    for fields in (line.split(" ") for line in mounts.splitlines()):
        if len(fields) < 4:
            continue
        for _, controllers, path in paths:
            if fields[2] == "cgroup2" and not controllers:
                found.append((fields[1], path.rstrip("/"), "memory.max"))
            elif fields[2] == "cgroup" and "memory" in fields[3].split(",") and "memory" in controllers.split(","):
                found.append((fields[1], path.rstrip("/"), "memory.limit_in_bytes"))
    return found
