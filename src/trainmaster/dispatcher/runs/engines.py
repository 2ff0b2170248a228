"""The engines of a dispatcher: one of each kind, created when it is first needed."""

from __future__ import annotations

from collections.abc import Callable

from trainmaster.engines import Engine


class Engines:
    """Creates engines by name, and keeps them."""

    def __init__(self, create: Callable[[str], Engine]) -> None:
        self._create = create
        self._engines: dict[str, Engine] = {}

    def get(self, name: str) -> Engine:
        """The engine of this name. Raises ComputeTargetException if no installed package provides it."""
        if name not in self._engines:
            self._engines[name] = self._create(name)
        return self._engines[name]

    async def close(self) -> None:
        """Closes all engines; agents keep running."""
        for engine in self._engines.values():
            await engine.close()
