"""Whether `run` is quick enough to be called in the thread of the event loop. Pure: seconds in, a decision out."""

from __future__ import annotations


class Pace:
    """Quick calls in a row lead to `direct`; slow ones end it, and each time more quick ones are wanted.

    Handing a call to another thread and back costs as much as a small model does. A slow call must not keep health
    checks waiting, though.
    """

    QUICK = 0.005
    SLOW = 0.02
    FAR_TOO_SLOW = 0.25
    FIRST, MOST = 16, 1024
    # One slow call may be the machine's doing and not the script's; fifty quick ones make up for one.
    PATIENCE, FORGIVEN = 3.0, 0.02

    def __init__(self) -> None:
        self.direct = False
        self._wanted = self.FIRST
        self._quick = 0
        self._slow = 0.0

    def note(self, seconds: float) -> None:
        """One call took so long."""
        if self.direct:
            self._note_direct(seconds)
        elif seconds >= self.QUICK:
            self._quick = 0
        else:
            self._quick += 1
            if self._quick >= self._wanted:
                self.direct, self._slow = True, 0.0

    def _note_direct(self, seconds: float) -> None:
        if seconds < self.SLOW:
            if self._slow:
                self._slow = max(0.0, self._slow - self.FORGIVEN)
            return
        self._slow += 1.0 if seconds < self.FAR_TOO_SLOW else self.PATIENCE
        if self._slow >= self.PATIENCE:
            self.direct, self._quick = False, 0
            self._wanted = min(self._wanted * 2, self.MOST)
