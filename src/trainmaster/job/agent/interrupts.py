"""Signals as events to wait for: no polling, and no signal handler runs in the middle of other work."""

import _signal  # type: ignore[import-not-found]
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence

    from trainmaster.job.agent.process import Process


class Interrupted(BaseException):
    """A request to stop arrived during work that may be left unfinished."""


class Interrupts(object):
    """Counts the requests to stop (SIGTERM, SIGINT). They, and children that end, wake the waiting agent."""

    def __init__(self) -> None:
        self.stop_requests = 0
        self._raises = False
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._reading, False)
        os.set_blocking(self._writing, False)
        # A full pipe does as well as one byte: after waking up the agent checks everything.
        _set_wakeup(self._writing)
        _signal.signal(_signal.SIGTERM, self._on_stop)
        _signal.signal(_signal.SIGINT, self._on_stop)
        # Needs a handler: a signal that is ignored or has its default action does not wake the agent.
        _signal.signal(_signal.SIGCHLD, _ignore)
        _signal.signal(_signal.SIGHUP, _signal.SIG_IGN)

    def close(self) -> None:
        """Restores the default actions of the signals."""
        for number in (_signal.SIGTERM, _signal.SIGINT, _signal.SIGCHLD):
            _signal.signal(number, _signal.SIG_DFL)
        _signal.set_wakeup_fd(-1)
        os.close(self._reading)
        os.close(self._writing)

    def raise_on_stop(self) -> "_RaiseOnStop":
        """A context manager in which a request to stop raises Interrupted."""
        return _RaiseOnStop(self)

    def wait(self, seconds: "float | None", processes: "Sequence[Process]" = ()) -> None:
        """Returns at a signal, when one of the processes ends, or after `seconds` (None: no limit)."""
        if processes:
            from trainmaster.job.agent.tree import wait_for_any

            wait_for_any(processes, 3600.0 if seconds is None else seconds, (self._reading,))
        else:
            import select

            # Longer times overflow; callers check the clock again anyway.
            select.select([self._reading], [], [], None if seconds is None else min(seconds, 3600.0))
        try:
            os.read(self._reading, 4096)
        except BlockingIOError:
            # Woken by the timeout, or by the end of a process that is not a child.
            pass

    def _on_stop(self, number: int, frame: object) -> None:
        self.stop_requests += 1
        if self._raises:
            raise Interrupted


class _RaiseOnStop(object):
    def __init__(self, interrupts: Interrupts) -> None:
        self._interrupts = interrupts

    def __enter__(self) -> None:
        self._interrupts._raises = True
        if self._interrupts.stop_requests:
            self.__exit__()
            raise Interrupted

    def __exit__(self, *error: object) -> None:
        self._interrupts._raises = False


def _set_wakeup(handle: int) -> None:
    try:
        _signal.set_wakeup_fd(handle, warn_on_full_buffer=False)
    except TypeError:  # Python 3.6
        _signal.set_wakeup_fd(handle)


def _ignore(number: int, frame: object) -> None:
    return
