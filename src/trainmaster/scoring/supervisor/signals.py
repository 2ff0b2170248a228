"""Turns signals to the supervisor into something it can wait for."""

from __future__ import annotations

import os
import signal
from types import FrameType


class Signals:
    """Counts requests to stop (SIGTERM, SIGINT) and to read the plan again (SIGHUP). Ended children also wake it."""

    def __init__(self) -> None:
        self.stops = 0
        self.plans = 0
        self.reading, writing = os.pipe()
        os.set_blocking(self.reading, False)
        os.set_blocking(writing, False)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        signal.signal(signal.SIGHUP, self._plan)
        # SIGCHLD needs a handler: a signal with the default action does not wake the process.
        signal.signal(signal.SIGCHLD, lambda number, frame: None)

    def clear(self) -> None:
        """Discard the bytes that signalled the wake-up."""
        try:
            os.read(self.reading, 4096)
        except BlockingIOError:
            return

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.stops += 1

    def _plan(self, number: int, frame: FrameType | None) -> None:
        self.plans += 1
