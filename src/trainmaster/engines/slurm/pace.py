"""How often squeue runs: soon after something happened, then less and less often."""

from __future__ import annotations


class Pace:
    """Says when the next query is due: never sooner than `least` seconds after the last one.

    >>> pace = Pace(least=1.0, most=15.0)
    >>> pace.note_query(now=100.0)
    >>> pace.due_in(now=100.0), pace.due_in(now=100.25)
    (1.0, 0.75)
    >>> pace.note_query(now=101.0)
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
        """Seconds until the next query; 0 if it is due."""
        return 0.0 if self._last is None else max(0.0, self._last + max(self._pause, self._least) - now)

    def note_query(self, now: float) -> None:
        """Notes that a query was made."""
        self._last = now
        self._pause = min(self._pause * 2, self._most)

    def hurry(self) -> None:
        """Shortens the pause: something happened, so the next query will probably return something new."""
        self._pause = self._least / 2
