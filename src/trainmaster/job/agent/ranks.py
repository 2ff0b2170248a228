"""The processes of the script on this node, and how each of them ended."""

import os

from trainmaster.job.agent import clock, process
from trainmaster.job.agent.cgroup import memory_events
from trainmaster.job.agent.spawn import encode

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
        self.memory_ran_out = False
        self.told = False
        self.last_words = {}  # type: dict[str, object]
        self.ended_at = None
        self.stack = None  # where it stood, if it was asked

    @property
    def ended(self):
        return self.ended_at is not None

    @property
    def failed(self):
        return self.ended and self.exit_code != 0

    def note_end(self, status, memory_ran_out, told=False):
        """Takes what `waitpid` said, whether the kernel has killed for memory, and whether it was told to end."""
        self.ended_at = clock.moment(os.path.dirname(encode(self.log)))
        self.told = told
        if os.WIFSIGNALED(status):
            self.signal = os.WTERMSIG(status)
        else:
            self.exit_code = os.WEXITSTATUS(status)
        # A shell or a launcher reports the SIGKILL of its child as 128 + 9.
        killed = self.signal == _SIGKILL or self.exit_code == 128 + _SIGKILL
        self.memory_ran_out = memory_ran_out and not told
        self.out_of_memory = self.memory_ran_out and killed
        if self.failed:
            from trainmaster.job.agent import cause

            self.last_words = cause.last_words(encode(self.log))

    def how(self):
        """How it ended, for the agent's log."""
        if self.signal is None:
            return "ended with exit code {}".format(self.exit_code)
        return "was ended by {}{}".format(signal_name(self.signal), " (out of memory)" if self.out_of_memory else "")

    def running_record(self):
        return {"rank": self.rank, "pid": self.pid, "start_time": self.start_time}

    def end_record(self):
        record = dict(
            self.failure_record(),
            memory_ran_out=self.memory_ran_out,
            told=self.told,
            ended_at=self.ended_at,
            **self.last_words,
        )
        if self.stack is not None:
            record["stack"] = self.stack
        return record

    def failure_record(self):
        return {
            "rank": self.rank,
            "exit_code": self.exit_code,
            "signal": self.signal,
            "out_of_memory": self.out_of_memory,
        }


def memory_kills(cgroup=None):
    """How often the kernel killed a process for memory: of the cgroup if it counts them there, else of the machine."""
    counts = memory_events(cgroup) if cgroup else None
    for line in (counts or process.read("/proc/vmstat") or b"").splitlines():
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
