"""One process, as Linux describes it. A process id together with a start time identifies a process for ever."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Union

    # Of /proc, where ids are names.
    Pid = Union[int, str]

# Fields of /proc/<pid>/stat behind the closing bracket of the command.
_STATE, _PARENT, _THREADS, _START_TIME = 0, 1, 17, 19


class Process(object):
    """A process as seen once: `pid` and `start_time` identify it, the rest may have changed since."""

    __slots__ = ("command", "gone", "parent", "pid", "start_time")

    def __init__(self, pid: int, parent: int, start_time: int, command: str, gone: bool) -> None:
        self.pid = pid
        self.parent = parent
        self.start_time = start_time
        self.command = command
        self.gone = gone

    @property
    def name(self) -> "tuple[int, int]":
        """Identifies the process among all processes of this boot."""
        return (self.pid, self.start_time)


def look(pid: "Pid") -> "Process | None":
    """The process with this id, or None."""
    stat = read("/proc/{}/stat".format(pid))
    if not stat:
        return None
    # The command may contain spaces and brackets: the last bracket ends it.
    before, _, after = stat.rpartition(b")")
    fields = after.split()
    # A zombie is gone, unless only its first thread has ended.
    gone = fields[_STATE] in (b"Z", b"X", b"x") and int(fields[_THREADS]) <= 1
    command = before.partition(b"(")[2].decode("utf-8", "replace")
    return Process(int(pid), int(fields[_PARENT]), int(fields[_START_TIME]), command, gone)


def start_time(pid: "Pid") -> "int | None":
    """When the process started, in ticks since the boot (field 22 of its stat); None if it does not exist."""
    found = look(pid)
    return None if found is None else found.start_time


def newest() -> int:
    """The process id that was assigned last; 0 where Linux does not say."""
    last = (read("/proc/loadavg") or b"0").split()[-1]
    return int(last) if last.isdigit() else 0


def is_thread(pid: int) -> bool:
    """Whether this is the id of a thread other than the first of its process (or no longer exists)."""
    return b"\nTgid:\t%d\n" % pid not in (read("/proc/{}/status".format(pid)) or b"")


def boot_id() -> str:
    """Identifies the machine and its current boot; empty where Linux does not say."""
    return (read("/proc/sys/kernel/random/boot_id") or b"").decode("ascii", "replace").strip()


_this_boot = boot_id  # `is_alive` has a parameter of the same name, which its callers use


def is_alive(pid: "Pid", start_time: "int | None", boot_id: "str | None") -> bool:
    """Whether exactly the recorded process is still running (a zombie is not)."""
    if boot_id and boot_id != _this_boot():
        return False
    found = look(pid)
    return found is not None and found.start_time == start_time and not found.gone


def send(process: Process, signal: int) -> bool:
    """Signals exactly this process, never one that got its id later. False if it is gone or belongs to another user."""
    if not hasattr(os, "pidfd_open"):
        return _send_by_pid(process, signal)
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return False
    except OSError:
        # A kernel older than 5.3, a sandbox that forbids the call, or no free file descriptor.
        return _send_by_pid(process, signal)
    try:
        import _signal  # type: ignore[import-not-found]

        if start_time(process.pid) != process.start_time:
            return False
        _signal.pidfd_send_signal(handle, signal)
        return True
    except OSError:
        return False
    finally:
        os.close(handle)


def _send_by_pid(process: Process, signal: int) -> bool:
    if start_time(process.pid) != process.start_time:
        return False
    try:
        os.kill(process.pid, signal)
    except OSError:
        return False
    return True


def read(path: str) -> "bytes | None":
    """The bytes of a small kernel file, or None if it cannot be read (the process may just have ended)."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        parts: "list[bytes]" = []
        while True:
            part = os.read(handle, 65536)
            if not part:
                return b"".join(parts)
            parts.append(part)
    except OSError:
        return None
    finally:
        os.close(handle)
