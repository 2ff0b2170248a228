"""The memory that all connections share."""

from __future__ import annotations

import asyncio

import pytest

from trainmaster.dispatcher.room import NoRoomError, Room, Share


def test_what_is_free_for_all_is_not_counted() -> None:
    async def use() -> None:
        room = Room(100)
        share = Share(room, 10, 60)
        await share.grow_to(10)
        assert room.used == 0
        await share.grow_to(60)
        await share.grow_to(40)
        assert room.used == 50
        share.give_back()
        share.give_back()
        assert room.used == 0

    asyncio.run(use())


def test_in_turn_and_never_more_than_there_is() -> None:
    async def use() -> None:
        room = Room(100)
        await room.take(60, 60)
        order: list[str] = []

        async def want(name: str, count: int) -> None:
            await room.take(count, 60)
            order.append(name)
            assert room.used <= 100
            await asyncio.sleep(0)
            room.give_back(count)

        tasks = [asyncio.create_task(want(name, count)) for name, count in (("much", 90), ("little", 10))]
        for _ in range(10):
            await asyncio.sleep(0)
        assert order == []
        room.give_back(60)
        await asyncio.gather(*tasks)
        assert order == ["much", "little"] and room.used == 0
        # One that is larger than all there is has to be let through, alone.
        await room.take(500, 60)
        room.give_back(500)

    asyncio.run(use())


def test_nobody_waits_for_ever() -> None:
    async def use() -> None:
        room = Room(100)
        await room.take(100, 60)
        with pytest.raises(NoRoomError):
            await room.take(1, 0.01)
        room.give_back(100)
        await room.take(100, 60)
        assert room.used == 100

    asyncio.run(use())
