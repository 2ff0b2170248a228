"""Memory for requests and answers: bounded over all connections together."""

from __future__ import annotations

import asyncio


class NoRoomError(Exception):
    """Others have held all of it for too long."""


class Room:
    """So many bytes for all; whoever wants more than is free waits."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._used = 0
        self._turn = asyncio.Lock()
        self._changed = asyncio.Event()

    @property
    def used(self) -> int:
        """How many bytes are held."""
        return self._used

    async def take(self, count: int, seconds: float) -> None:
        """Waits for room. Raises NoRoomError after so long, when those that hold it do not go on."""
        try:
            # In turn, so that one who wants much is not overtaken for ever.
            async with asyncio.timeout(seconds), self._turn:
                while self._used and self._used + count > self._size:
                    self._changed.clear()
                    await self._changed.wait()
                self._used += count
        except TimeoutError:
            raise NoRoomError from None

    def give_back(self, count: int) -> None:
        """Lets others have it."""
        self._used -= count
        self._changed.set()


class Share:
    """What one connection holds of the room; what every connection may have is not counted."""

    def __init__(self, room: Room, free: int, seconds: float) -> None:
        self._room = room
        self._free = free
        self._seconds = seconds
        self._held = 0

    async def grow_to(self, count: int) -> None:
        """Returns when there is room for `count` bytes in all."""
        more = count - self._free - self._held
        if more > 0:
            await self._room.take(more, self._seconds)
            self._held += more

    def give_back(self) -> None:
        """Lets others have all of it."""
        if self._held:
            self._room.give_back(self._held)
            self._held = 0
