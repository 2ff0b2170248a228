"""The end of a server: streams end themselves when it is announced, requests are finished."""

from __future__ import annotations

import asyncio


class Stopping:
    """Announces that the server stops. A stream waits for its own news and for this."""

    def __init__(self) -> None:
        self._event: asyncio.Event | None = None
        self._announced = False

    @property
    def is_announced(self) -> bool:
        return self._announced

    def announce(self) -> None:
        """Ask all streams to end."""
        self._announced = True
        if self._event is not None:
            self._event.set()

    async def wait(self) -> None:
        """Return when the server stops."""
        if self._event is None:
            self._event = asyncio.Event()
        if self._announced:
            return
        await self._event.wait()
