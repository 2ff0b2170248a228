"""A real dispatcher in the process of the test, for tests of operations and of what calls them."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any, Self

from trainmaster.dispatcher.api.operations import Operations
from trainmaster.dispatcher.assembly import assemble
from trainmaster.dispatcher.store import Store
from trainmaster.shared.folders import WorkspaceFolder


class InnerDispatcher:
    """A workspace with its dispatcher, in this process. It is its own backend and connection."""

    def __init__(self, path: Path) -> None:
        self.folder = WorkspaceFolder(path)
        self.folder.identity.write_text('{"id": "w", "name": "w"}')
        self.store = (Store.open if self.folder.database.exists() else Store.create)(self.folder.database)
        self.loop = asyncio.new_event_loop()
        self.dispatcher = assemble(self.folder, self.store)
        self.operations = Operations(self.dispatcher)
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self.name = "inner"
        self.backend = self.connection = self

    def call(self, op: str, **args: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(self.operations.call(op, args), self.loop).result(60)

    def resume(self) -> None:
        """Continues what an earlier dispatcher of the folder had begun."""

        async def resume() -> None:
            self.dispatcher.resume()

        asyncio.run_coroutine_threadsafe(resume(), self.loop).result(60)

    def open_connection(self) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self.dispatcher.close(), self.loop).result(60)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()
        self.store.close()
