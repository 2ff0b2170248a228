"""Long operations that clients wait for. The dispatcher does not count as idle while there are any."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Activity:
    """Counts the operations that are in progress."""

    def __init__(self) -> None:
        self._count = 0

    @property
    def is_busy(self) -> bool:
        """Whether an operation is in progress."""
        return self._count > 0

    @contextmanager
    def working(self) -> Iterator[None]:
        """Counts one operation while the block runs."""
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1
