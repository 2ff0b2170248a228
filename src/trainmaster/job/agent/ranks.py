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
            told=self.was_stopped,
            ended_at=self.ended_at,
            **self.last_words,
        )
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
