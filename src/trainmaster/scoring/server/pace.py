"""Decides whether `run` is fast enough to be called in the thread of the event loop. Pure."""

from __future__ import annotations


class Pace:
    """Enough fast calls set `is_direct`; slow calls clear it, and each time more fast calls are needed.

    Passing a call to another thread and back takes as long as a small model. But slow calls must not delay health
    checks: together they may take a quarter of a second. Fast calls compensate for slow ones, because on a busy machine
    a call may be slow through no fault of the script.
    """

    QUICK = 0.005
    SLOW = 0.02
    PATIENCE = 0.25
    FORGIVEN = 0.002
    FIRST, MOST, SETBACK = 16, 256, 16

    def __init__(self) -> None:
        self.is_direct = False
        self._wanted = self.FIRST
        self._quick = 0
        self._blocked = 0.0

    @property
    def has_debt(self) -> bool:
        """Whether there are slow calls to compensate for; if not, fast calls need not be recorded while `is_direct`."""
        return self._blocked > 0.0

    def note(self, seconds: float) -> None:
        """Record the duration of one call."""
        if self.is_direct:
            self._note_direct(seconds)
        elif seconds >= self.QUICK:
            self._quick = max(0, self._quick - self.SETBACK)
        else:
            self._quick += 1
            if self._quick >= self._wanted:
                self.is_direct, self._blocked = True, 0.0

    def _note_direct(self, seconds: float) -> None:
        if seconds < self.SLOW:
            self._blocked = max(0.0, self._blocked - self.FORGIVEN)
            return
        self._blocked += seconds
        if self._blocked >= self.PATIENCE:
            self.is_direct, self._quick = False, 0
            self._wanted = min(self._wanted * 2, self.MOST)
