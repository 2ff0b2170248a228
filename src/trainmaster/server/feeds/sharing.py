"""One feed for all clients that follow the same thing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Generic, Protocol, TypeVar


class Feed(Protocol):
    """What several clients follow together."""

    followers: int

    @property
    def has_failed(self) -> bool: ...

    def start(self) -> None: ...

    def stop(self) -> None: ...


F = TypeVar("F", bound=Feed)


class SharedFeeds(Generic[F]):
    """The feeds that somebody follows, by the folder of what they are about."""

    def __init__(self) -> None:
        self._feeds: dict[Path, F] = {}

    @contextlib.contextmanager
    def share(self, folder: Path, make: Callable[[], F]) -> Iterator[F]:
        """The feed about `folder`. Clients that follow it at the same time share it; the last one stops it."""
        feed = self._feeds.get(folder)
        if feed is None or feed.has_failed:
            feed = self._feeds[folder] = make()
            feed.start()
        feed.followers += 1
        try:
            yield feed
        finally:
            feed.followers -= 1
            if feed.followers == 0:
                # A feed that failed may already have been replaced.
                if self._feeds.get(folder) is feed:
                    del self._feeds[folder]
                feed.stop()

    def stop_all(self) -> None:
        """Stop all feeds."""
        for feed in list(self._feeds.values()):
            feed.stop()

    def __len__(self) -> int:
        return len(self._feeds)
