"""The server's connections to a dispatcher, here one that answers only when the test lets it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from trainmaster import __version__
from trainmaster.job.errors import ServiceException
from trainmaster.server import dispatchers
from trainmaster.server.dispatchers import Dispatchers
from trainmaster.shared.folders import WorkspaceFolder


class SlowDispatcher:
    """Greets only the first connection until `greet` is set, and answers a request when its gate is open."""

    def __init__(self, folder: WorkspaceFolder) -> None:
        self._folder = folder
        self.connections = 0
        self.greet = asyncio.Event()
        self.gates: dict[str, asyncio.Event] = {}
        self.answered: list[str] = []
        self._serving: set[asyncio.Task[None]] = set()

    async def listen(self) -> asyncio.Server:
        return await asyncio.start_unix_server(self._serve, str(self._folder.socket))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        self.connections += 1
        is_first = self.connections == 1
        while line := await reader.readline():
            op = json.loads(line)["op"]
            if op == "hello" and not is_first:
                await self.greet.wait()
            elif op in self.gates:
                await self.gates[op].wait()
            self.answered.append(op)
            writer.write(json.dumps({"id": 1, "result": {"version": __version__}}).encode() + b"\n")
        writer.close()
        await writer.wait_closed()

    async def end(self) -> None:
        """Returns when all clients have left."""
        self.greet.set()
        await asyncio.gather(*self._serving)


def run_with(tmp_path: Path, test: Callable[[SlowDispatcher, Dispatchers, WorkspaceFolder], Awaitable[None]]) -> None:
    folder = WorkspaceFolder(tmp_path)

    async def run() -> None:
        dispatcher, asked = SlowDispatcher(folder), Dispatchers()
        listening = await dispatcher.listen()
        try:
            await test(dispatcher, asked, folder)
        finally:
            await asked.close()
            await dispatcher.end()
            listening.close()

    asyncio.run(asyncio.wait_for(run(), 60))


def test_a_request_that_waits_for_a_new_connection_is_not_overtaken(tmp_path: Path) -> None:
    async def test(dispatcher: SlowDispatcher, asked: Dispatchers, folder: WorkspaceFolder) -> None:
        dispatcher.gates["first"] = asyncio.Event()
        first = asyncio.create_task(asked.call(folder, "first", {}))
        while dispatcher.answered != ["hello"]:
            await asyncio.sleep(0)
        second = asyncio.create_task(asked.call(folder, "second", {}))
        while dispatcher.connections < 2:
            await asyncio.sleep(0)
        third = asyncio.create_task(asked.call(folder, "third", {}))
        await asyncio.sleep(0)
        dispatcher.gates["first"].set()
        await asyncio.gather(first, second, third)
        # All three over the one connection that was greeted.
        assert dispatcher.answered == ["hello", "first", "second", "third"]

    run_with(tmp_path, test)


def test_a_failure_to_connect_is_the_answer_to_all_that_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(folder: WorkspaceFolder) -> None:
        raise ServiceException("the dispatcher could not be reached")

    async def test(dispatcher: SlowDispatcher, asked: Dispatchers, folder: WorkspaceFolder) -> None:
        monkeypatch.setattr(dispatchers, "_connect", fail)
        calls = [asyncio.create_task(asked.call(folder, "status", {})) for _ in range(5)]
        found = await asyncio.gather(*calls, return_exceptions=True)
        assert {str(each) for each in found} == {"the dispatcher could not be reached"}

    run_with(tmp_path, test)


def test_a_request_that_is_given_up_leaves_its_connection_to_others(tmp_path: Path) -> None:
    async def test(dispatcher: SlowDispatcher, asked: Dispatchers, folder: WorkspaceFolder) -> None:
        waiting = asyncio.create_task(asked.call(folder, "waiting", {}))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await asked.call(folder, "next", {})
        assert dispatcher.answered == ["hello", "next"]

    run_with(tmp_path, test)
