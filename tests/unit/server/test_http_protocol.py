"""Answers on a connection: head and body in one write, and nothing lost when it is closed."""

from __future__ import annotations

import asyncio

from trainmaster.server.http_protocol import JoinedWrites


class Connection(asyncio.Transport):
    """Notes what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self._is_closed = False

    def write(self, data: bytes) -> None:  # type: ignore[override]
        assert not self._is_closed
        self.written.append(data)

    def is_closing(self) -> bool:
        return self._is_closed

    def close(self) -> None:
        self._is_closed = True


def test_one_step_is_one_write():
    async def answer() -> list[bytes]:
        connection = Connection()
        joined = JoinedWrites(connection, asyncio.get_running_loop())
        joined.write(b"head ")
        joined.write(b"body")
        assert connection.written == []
        await asyncio.sleep(0)
        joined.write(b"more")
        await asyncio.sleep(0)
        return connection.written

    assert asyncio.run(answer()) == [b"head body", b"more"]


def test_large_pieces_are_not_copied_and_stay_in_order():
    large = bytes(100_000)

    async def answer() -> list[bytes]:
        connection = Connection()
        joined = JoinedWrites(connection, asyncio.get_running_loop())
        joined.write(b"head")
        joined.write(large)
        joined.write(b"end")
        await asyncio.sleep(0)
        return connection.written

    written = asyncio.run(answer())
    assert written == [b"head", large, b"end"]
    assert written[1] is large


def test_closing_sends_what_was_written():
    async def answer() -> list[bytes]:
        connection = Connection()
        joined = JoinedWrites(connection, asyncio.get_running_loop())
        joined.write(b"last words")
        joined.close()
        assert joined.is_closing()
        await asyncio.sleep(0)
        return connection.written

    assert asyncio.run(answer()) == [b"last words"]
