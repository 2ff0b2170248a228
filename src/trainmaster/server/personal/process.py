"""The process of `trainmaster studio`: the server's, until nobody uses it any more."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

from trainmaster.server.app import App
from trainmaster.server.process import Process, address
from trainmaster.server.settings import Settings


class StudioProcess(Process):
    """Serves until SIGTERM or SIGINT, or until there was no request and no stream for `idle_seconds`."""

    def __init__(self, app: App, settings: Settings, idle_seconds: float, begin: Callable[[str], None]) -> None:
        super().__init__(app, settings)
        self._idle_seconds = idle_seconds
        self._begin = begin
        self._requests = 0
        self._used_at = time.monotonic()

    async def announce(self, port: int) -> None:
        """The studio listens. Jobs are not told: they do not use it."""
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            # The terminal was closed.
            signal.signal(signal.SIGHUP, self.handle_exit)
        self._begin(address(self._settings, port))

    async def on_tick(self, counter: int) -> bool:
        """Once a second, look whether the studio is used."""
        if counter % 10 == 0 and self._measure_idle() > self._idle_seconds:
            self.should_exit = True
        return await super().on_tick(counter)

    def _measure_idle(self) -> float:
        """Seconds since the last request; an open stream is one that goes on."""
        observation, now = self._parts.observation, time.monotonic()
        requests = observation.requests.total()
        if observation.in_progress or requests != self._requests:
            self._requests, self._used_at = requests, now
        return now - self._used_at
