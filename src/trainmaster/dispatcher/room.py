"""Memory for long requests and answers: limited for all connections together."""

from __future__ import annotations

import asyncio


class NoRoomError(Exception):
    """Other connections have used all of the room for too long."""


class Room:
    """A number of bytes for all connections. A connection that needs more than is free has to wait."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._used = 0
        self._turn = asyncio.Lock()
        self._changed = asyncio.Event()

    @property
    def used(self) -> int:
        """How many bytes are in use."""
        return self._used

    async def take(self, count: int, seconds: float) -> None:
        """Wait until `count` bytes are free. Raises NoRoomError after `seconds`."""
        try:
            # One after the other, so that a large request is not overtaken for ever.
            async with asyncio.timeout(seconds), self._turn:
                while self._used and self._used + count > self._size:
                    self._changed.clear()
                    await self._changed.wait()
                self._used += count
        except TimeoutError:
            raise NoRoomError from None

    def give_back(self, count: int) -> None:
        """Free `count` bytes."""
        self._used -= count
        self._changed.set()


class Share:
    """The room that one connection uses. The first `free` bytes are not counted."""

    def __init__(self, room: Room, free: int, seconds: float) -> None:
        self._room = room
        self._free = free
        self._seconds = seconds
        self._held = 0

    async def grow_to(self, count: int) -> None:
        """Wait until the connection may use `count` bytes in total."""
        more = count - self._free - self._held
        if more > 0:
            await self._room.take(more, self._seconds)
            self._held += more

    def give_back(self) -> None:
        """Free all of it."""
        if self._held:
            self._room.give_back(self._held)
            self._held = 0
