"""How long to wait before a replica that died is started again."""

from __future__ import annotations

_FIRST_SECONDS, _MOST_SECONDS = 0.5, 30.0


def pause(deaths: int) -> float:
    """Seconds after so many deaths in a row: none after the first, then twice as many each time.

    >>> [pause(deaths) for deaths in (1, 2, 3, 4, 20)]
    [0.0, 0.5, 1.0, 2.0, 30.0]
    """
    if deaths <= 1:
        return 0.0
    return min(_MOST_SECONDS, _FIRST_SECONDS * 2.0 ** min(deaths - 2, 10))
