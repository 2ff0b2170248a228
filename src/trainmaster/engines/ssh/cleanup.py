"""What was left on hosts that could not be reached when a run ended: it is ended when they are reached again."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

from trainmaster.engines.ssh.session import Session
from trainmaster.job.agent import durable


class Cleanup:
    """Notes in the workspace's folder: `hosts/<host>/<run id>`, which hold the kit to use there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def note(self, host: str, run_id: str, kit: str) -> None:
        """Something of this run may still be on this host."""
        place = self._place(host)
        durable.make_folder(place)
        durable.write(place / run_id, kit.encode())

    def runs(self, host: str) -> list[str]:
        """The runs of which something may still be there."""
        with contextlib.suppress(OSError):
            return sorted(path.name for path in self._place(host).iterdir())
        return []

    async def settle(self, session: Session) -> None:
        """Ends what is left on a host that was just reached."""
        for run_id in self.runs(session.host.shown):
            note = self._place(session.host.shown) / run_id
            try:
                kit = note.read_text()
            except FileNotFoundError:
                # Another connection has been quicker.
                continue
            await session.call({"op": "sweep", "run": run_id, "kit": kit, "remove": True})
            note.unlink(missing_ok=True)

    def _place(self, host: str) -> Path:
        return self._folder / re.sub(r"[^\w.@:-]", "_", host)
