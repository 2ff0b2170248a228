"""The processes of the script on this node, and how each of them ended."""

import os
import time

from trainmaster.node import process

_SIGKILL = 9


class Rank(object):
    """One started process of the script."""

    def __init__(self, rank, pid, log, service=False):
        self.rank = rank
        self.pid = pid
        self.log = log
        self.service = service  # never ends by itself
        self.start_time = process.start_time(pid)
        self.exit_code = None
        self.signal = None
        self.out_of_memory = False
        self.ended_at = None

    @property
    def ended(self):
        return self.ended_at is not None

    @property
    def failed(self):
        return self.ended and self.exit_code != 0

    def note_end(self, status, memory_ran_out):
        """Takes what `waitpid` said, and whether the kernel has killed for memory since the start."""
        self.ended_at = time.time()
        if os.WIFSIGNALED(status):
            self.signal = os.WTERMSIG(status)
        else:
            self.exit_code = os.WEXITSTATUS(status)
        # A shell or a launcher reports the SIGKILL of its child as 128 + 9.
        self.out_of_memory = memory_ran_out and (self.signal == _SIGKILL or self.exit_code == 128 + _SIGKILL)

    def how(self):
        """How it ended, for the agent's log."""
        if self.signal is None:
            return "ended with exit code {}".format(self.exit_code)
        return "was ended by {}{}".format(signal_name(self.signal), " (out of memory)" if self.out_of_memory else "")

    def running_record(self):
        return {"rank": self.rank, "pid": self.pid, "start_time": self.start_time}

    def end_record(self):
        record = self.failure_record()
        record["ended_at"] = self.ended_at
        return record

    def failure_record(self):
        return {
            "rank": self.rank,
            "exit_code": self.exit_code,
            "signal": self.signal,
            "out_of_memory": self.out_of_memory,
        }


def memory_kills():
    """How often the kernel killed a process for memory since it booted; 0 where it does not count."""
    for line in (process.read("/proc/vmstat") or b"").splitlines():
        if line.startswith(b"oom_kill "):
            return int(line.split()[1])
    return 0


def signal_name(number):
    """
    >>> signal_name(9)
    'SIGKILL'
    """
    import signal

    try:
        return signal.Signals(number).name
    except ValueError:
        return "signal {}".format(number)
