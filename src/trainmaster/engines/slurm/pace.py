"""How often to ask: soon after something happened, then less and less often."""

from __future__ import annotations


class Pace:
    """Says when the next question is due. Never sooner than `least` seconds after the last one.

    >>> pace = Pace(least=1.0, most=15.0)
    >>> pace.asked(now=100.0)
    >>> pace.due_in(now=100.0), pace.due_in(now=100.25)
    (1.0, 0.75)
    >>> pace.asked(now=101.0)
    >>> pace.due_in(now=101.0)
    2.0
    >>> pace.hurry()
    >>> pace.due_in(now=101.0)
    1.0
    """

    def __init__(self, least: float, most: float) -> None:
        self._least, self._most = least, most
        self._pause = least / 2
        self._last: float | None = None

    def due_in(self, now: float) -> float:
        """Seconds until the next question; 0 if it is due."""
        return 0.0 if self._last is None else max(0.0, self._last + max(self._pause, self._least) - now)

    def asked(self, now: float) -> None:
        """A question was asked."""
        self._last = now
        self._pause = min(self._pause * 2, self._most)

    def hurry(self) -> None:
        """Something happened: what is asked next is likely to be new."""
        self._pause = self._least / 2
