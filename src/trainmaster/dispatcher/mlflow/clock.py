"""The time, as exact as MLflow knows it."""

from __future__ import annotations

import time


def read_clock() -> float:
    """Seconds since the epoch, without fractions of milliseconds: nothing is later than a client's own clock."""
    return int(time.time() * 1000) / 1000.0
