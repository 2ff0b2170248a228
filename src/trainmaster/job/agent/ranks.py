"""The processes of the script on this node, and how each of them ended."""

import os

from trainmaster.job.agent import clock, process
from trainmaster.job.agent.cgroup import memory_events
from trainmaster.job.agent.spawn import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SIGKILL = 9


class Rank(object):
    """One started process of the script."""

    def __init__(self, rank: int, pid: int, log: str, service: bool = False) -> None:
        self.rank = rank
        self.pid = pid
        self.log = log
        self.service = service  # never ends by itself
        self.start_time = process.start_time(pid)
        self.exit_code: "int | None" = None
        self.signal: "int | None" = None
        self.out_of_memory = False
        self.memory_ran_out = False
        self.was_stopped = False  # asked to end before it ended
        self.last_words: "dict[str, Any]" = {}
        self.ended_at: "float | None" = None
        self.stack: "str | None" = None  # of a rank that hung
        self.peak_memory = 0  # in bytes; of its largest process, or of all together when they were measured
        self.memory_limit: "tuple[int, str] | None" = None  # in bytes and what it applies to; of a rank that failed

    @property
    def has_ended(self) -> bool:
        return self.ended_at is not None

    @property
    def has_failed(self) -> bool:
        return self.has_ended and self.exit_code != 0

    def note_end(self, status: int, memory_ran_out: bool, was_stopped: bool = False) -> None:
        """Records the status from `waitpid`, whether the kernel killed for memory, and whether the rank was stopped."""
        self.ended_at = clock.now(os.path.dirname(encode(self.log)))
        self.was_stopped = was_stopped
        if os.WIFSIGNALED(status):
            self.signal = os.WTERMSIG(status)
        else:
            self.exit_code = os.WEXITSTATUS(status)
        # A shell or a launcher reports the SIGKILL of its child as 128 + 9.
        killed = self.signal == _SIGKILL or self.exit_code == 128 + _SIGKILL
        self.memory_ran_out = memory_ran_out and not was_stopped
        self.out_of_memory = self.memory_ran_out and killed
        if self.has_failed:
            from trainmaster.job.agent import cause

            self.last_words = cause.last_words(encode(self.log))

    def note_memory(self, peak: int, limit: "tuple[int, str] | None") -> None:
        """Records the most memory that the rank had, and what it was allowed to have if that may explain its end."""
        self.peak_memory = max(self.peak_memory, peak)
        self.memory_limit = limit or self.memory_limit

    def describe_end(self) -> str:
        """How the process ended, for the agent's log."""
        if self.signal is None:
            return "ended with exit code {}".format(self.exit_code)
        return "was ended by {}{}".format(signal_name(self.signal), " (out of memory)" if self.out_of_memory else "")

    def running_record(self) -> "dict[str, Any]":
        return {"rank": self.rank, "pid": self.pid, "start_time": self.start_time}

    def end_record(self) -> "dict[str, Any]":
        record = dict(
            self.failure_record(),
            memory_ran_out=self.memory_ran_out,
            peak_memory=self.peak_memory,
            told=self.was_stopped,
            ended_at=self.ended_at,
            **self.last_words,
        )
        if self.memory_limit is not None:
            record["memory_limit"], record["memory_limit_of"] = self.memory_limit
        if self.stack is not None:
            record["stack"] = self.stack
        return record

    def failure_record(self) -> "dict[str, Any]":
        return {
            "rank": self.rank,
            "exit_code": self.exit_code,
            "signal": self.signal,
            "out_of_memory": self.out_of_memory,
        }


class Ended(object):
    """A child that has ended and is reaped now."""

    __slots__ = ("limit", "peak", "pid", "status")

    def __init__(self, pid: int, limit: "tuple[int, str] | None") -> None:
        self.limit = limit
        self.pid, self.status, used = os.wait4(pid, 0)
        self.peak = used.ru_maxrss * 1024


def reap(pid: "int | None" = None, wait: bool = False) -> "Ended | None":
    """The child `pid`, or any child if None, once it has ended; None if none has, unless `wait`.

    Raises ChildProcessError if there is no child.
    """
    kind = (os.P_ALL, 0) if pid is None else (os.P_PID, pid)
    # Before it is reaped, Linux still knows the limits of a process.
    found = os.waitid(kind[0], kind[1], os.WEXITED | os.WNOWAIT | (0 if wait else os.WNOHANG))
    if found is None:
        return None
    if found.si_code == os.CLD_EXITED and found.si_status == 0:
        return Ended(found.si_pid, None)
    from trainmaster.job.agent.memory import find_limit

    return Ended(found.si_pid, find_limit(found.si_pid))


def memory_kills(cgroup: "str | None" = None) -> int:
    """How many processes the kernel killed for memory: in the cgroup if it counts there, else on the machine."""
    counts = memory_events(cgroup) if cgroup else None
    for line in (counts or process.read("/proc/vmstat") or b"").splitlines():
        if line.startswith(b"oom_kill "):
            return int(line.split()[1])
    return 0


def signal_name(number: int) -> str:
    """
    >>> signal_name(9)
    'SIGKILL'
    """
    import signal

    try:
        return signal.Signals(number).name
    except ValueError:
        return "signal {}".format(number)
