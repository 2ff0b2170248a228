"""Runs that may have left processes or files on a host that could not be reached when they ended."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

from trainmaster.engines.remote.connection import Connection
from trainmaster.job.agent import durable


class Cleanup:
    """Notes in the workspace's folder: `hosts/<host>/<run id>`. Each holds the kit to use on the host."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def note(self, host: str, run_id: str, kit: str) -> None:
        """Notes that something of this run may still be on this host."""
        folder = self._host_folder(host)
        durable.make_folder(folder)
        durable.write(folder / run_id, kit.encode())

    def runs(self, host: str) -> list[str]:
        """The runs that have still to be removed from a host."""
        with contextlib.suppress(OSError):
            return sorted(path.name for path in self._host_folder(host).iterdir())
        return []

    async def remove_remains(self, connection: Connection) -> None:
        """Ends and removes what these runs left on a host that has just been reached."""
        for run_id in self.runs(connection.host.label):
            note = self._host_folder(connection.host.label) / run_id
            try:
                kit = note.read_text()
            except FileNotFoundError:
                # Another connection was faster.
                continue
            await connection.call({"op": "sweep", "run": run_id, "kit": kit, "remove": True})
            note.unlink(missing_ok=True)

    def _host_folder(self, host: str) -> Path:
        return self._folder / re.sub(r"[^\w.@:-]", "_", host)
