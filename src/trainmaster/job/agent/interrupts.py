"""Signals as something to wait for: nothing polls, and nothing happens in the middle of something else."""

import _signal  # type: ignore[import-not-found]
import os


class Interrupted(BaseException):
    """Told to stop while something is under way that may be left unfinished."""


class Interrupts(object):
    """Counts the requests to stop (SIGTERM, SIGINT); they and ended children wake the waiting agent."""

    def __init__(self):
        self.asked = 0
        self._raises = False
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._reading, False)
        os.set_blocking(self._writing, False)
        # Full is as good as one byte: whoever wakes looks at everything.
        _set_wakeup(self._writing)
        _signal.signal(_signal.SIGTERM, self._on_stop)
        _signal.signal(_signal.SIGINT, self._on_stop)
        # A handler of its own, for what is ignored (or left to its default) wakes nobody.
        _signal.signal(_signal.SIGCHLD, _nothing)
        _signal.signal(_signal.SIGHUP, _signal.SIG_IGN)

    def close(self):
        """Signals do again what they do to any process."""
        for number in (_signal.SIGTERM, _signal.SIGINT, _signal.SIGCHLD):
            _signal.signal(number, _signal.SIG_DFL)
        _signal.set_wakeup_fd(-1)
        os.close(self._reading)
        os.close(self._writing)

    def raised(self):
        """Within this, a request to stop raises Interrupted."""
        return _Raised(self)

    def wait(self, seconds, processes=()):
        """Returns at a signal, when one of the processes ends, or after `seconds` (None: no limit)."""
        if processes:
            from trainmaster.job.agent.tree import wait_for_any

            wait_for_any(processes, seconds, (self._reading,))
        else:
            import select

            # Longer times overflow; whoever waits looks at the clock again anyway.
            select.select([self._reading], [], [], None if seconds is None else min(seconds, 3600.0))
        try:
            os.read(self._reading, 4096)
        except BlockingIOError:
            # Nothing to take away: it was the time, or a process that is not our child.
            pass

    def _on_stop(self, number, frame):
        self.asked += 1
        if self._raises:
            raise Interrupted


class _Raised(object):
    def __init__(self, interrupts):
        self._interrupts = interrupts

    def __enter__(self):
        self._interrupts._raises = True
        if self._interrupts.asked:
            self.__exit__()
            raise Interrupted

    def __exit__(self, *error):
        self._interrupts._raises = False


def _set_wakeup(handle):
    try:
        _signal.set_wakeup_fd(handle, warn_on_full_buffer=False)
    except TypeError:  # Python 3.6
        _signal.set_wakeup_fd(handle)


def _nothing(number, frame):
    return
