"""What Linux says about one process. A process id with its start time names one process for ever."""

import os

# Fields of /proc/<pid>/stat behind the command's closing bracket.
_STATE, _PARENT, _THREADS, _START_TIME = 0, 1, 17, 19


class Process(object):
    """One process as seen once: `pid` and `start_time` are its name, the rest may have changed since."""

    __slots__ = ("command", "gone", "parent", "pid", "start_time")

    def __init__(self, pid, parent, start_time, command, gone):
        self.pid = pid
        self.parent = parent
        self.start_time = start_time
        self.command = command
        self.gone = gone

    @property
    def name(self):
        """What tells it from every other process of this boot."""
        return (self.pid, self.start_time)


def look(pid):
    """The process with this id, or None."""
    stat = read("/proc/{}/stat".format(pid))
    if not stat:
        return None
    # The command may hold spaces and brackets: the last bracket is the one that ends it.
    before, _, after = stat.rpartition(b")")
    fields = after.split()
    # A zombie is gone, unless it is only the first thread that ended.
    gone = fields[_STATE] in (b"Z", b"X", b"x") and int(fields[_THREADS]) <= 1
    command = before.partition(b"(")[2].decode("utf-8", "replace")
    return Process(int(pid), int(fields[_PARENT]), int(fields[_START_TIME]), command, gone)


def start_time(pid):
    """When the process began, in ticks since the boot (field 22 of its stat); None if there is none."""
    found = look(pid)
    return None if found is None else found.start_time


def newest():
    """The process id that was given out last; 0 where Linux does not say."""
    last = (read("/proc/loadavg") or b"0").split()[-1]
    return int(last) if last.isdigit() else 0


def is_thread(pid):
    """Whether this is the id of a thread that is not the first of its process (or of nothing any more)."""
    return b"\nTgid:\t%d\n" % pid not in (read("/proc/{}/status".format(pid)) or b"")


def boot_id():
    """Which boot of which machine this is; empty where Linux does not say."""
    return (read("/proc/sys/kernel/random/boot_id") or b"").decode("ascii", "replace").strip()


_this_boot = boot_id  # the parameter below has the name callers expect


def is_alive(pid, start_time, boot_id):
    """Whether the very process that was noted so is still there (a zombie is not)."""
    if boot_id and boot_id != _this_boot():
        return False
    found = look(pid)
    return found is not None and found.start_time == start_time and not found.gone


def send(process, signal):
    """Signals this very process, never one that got its id later. False if it is gone or not ours."""
    if not hasattr(os, "pidfd_open"):
        return _send_by_pid(process, signal)
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return False
    except OSError:
        # A kernel older than 5.3, a sandbox that forbids the call, or no file descriptor left.
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


def _send_by_pid(process, signal):
    if start_time(process.pid) != process.start_time:
        return False
    try:
        os.kill(process.pid, signal)
    except OSError:
        return False
    return True


def read(path):
    """The bytes of a small kernel file, or None if it cannot be read (the process may just have ended)."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        parts = []  # type: list[bytes]
        while True:
            part = os.read(handle, 65536)
            if not part:
                return b"".join(parts)
            parts.append(part)
    except OSError:
        return None
    finally:
        os.close(handle)
