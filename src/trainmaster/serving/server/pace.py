"""Whether `run` is quick enough to be called in the thread of the event loop. Pure: seconds in, a decision out."""

from __future__ import annotations


class Pace:
    """Quick calls in a row lead to `direct`; one slow call ends it, and each time more quick ones are wanted.

    Handing a call to another thread and back costs as much as a small model does. A slow call must not keep health
    checks waiting, though.
    """

    QUICK = 0.005
    SLOW = 0.02
    FIRST, MOST = 16, 1024

    def __init__(self) -> None:
        self.direct = False
        self._wanted = self.FIRST
        self._quick = 0

    def note(self, seconds: float) -> None:
        """One call took so long."""
        if self.direct:
            if seconds >= self.SLOW:
                self.direct = False
                self._quick = 0
                self._wanted = min(self._wanted * 2, self.MOST)
        elif seconds >= self.QUICK:
            self._quick = 0
        else:
            self._quick += 1
            self.direct = self._quick >= self._wanted
