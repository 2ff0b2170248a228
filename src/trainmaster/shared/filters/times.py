"""Times in filters: dates, times, and spans before now."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_SPAN = re.compile(r"-(\d{1,6})(m|h|d|w)")
_UNITS = {"m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Period:
    """Seconds since the epoch: a whole day, or one moment (both are the same)."""

    start: float
    end: float

    @property
    def is_moment(self) -> bool:
        """Whether it is no day, but a time."""
        return self.start == self.end


def parse_time(text: str, now: float) -> Period | None:
    """The period that `text` means; None if it is not a time. A time without a zone is in UTC.

    >>> parse_time("2026-11-01", 0.0)
    Period(start=1793491200.0, end=1793577600.0)
    >>> parse_time("2026-11-01T10:00+01:00", 0.0).start, parse_time("-2h", 7200.0).start
    (1793523600.0, 0.0)
    """
    word = text.strip().lower()
    if span := _SPAN.fullmatch(word):
        return _make_moment(now - int(span[1]) * _UNITS[span[2]])
    if word == "now":
        return _make_moment(now)
    if word in ("today", "yesterday"):
        midnight = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        return _make_day(midnight if word == "today" else midnight - _DAY)
    try:
        found = datetime.fromisoformat(text.strip())
        if found.tzinfo is None:
            found = found.replace(tzinfo=UTC)
        return _make_day(found) if len(text.strip()) == len("2026-11-01") else _make_moment(found.timestamp())
    except (ValueError, OverflowError):
        return None


def _make_moment(seconds: float) -> Period:
    return Period(seconds, seconds)


def _make_day(start: datetime) -> Period:
    return Period(start.timestamp(), (start + _DAY).timestamp())
