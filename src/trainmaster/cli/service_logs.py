"""The logs of a service on the screen: their last lines, then what is added."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from trainmaster.sdk.backend.local.following import follow
from trainmaster.sdk.display.screen import write
from trainmaster.sdk.growing_text import GrowingText

_LOOK_SECONDS = 1.0


class ServiceLogs:
    """Logs that are read from where the last read ended, so that no line is skipped or repeated."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._texts = [GrowingText(path) for path in paths]

    def show_last(self, count: int) -> None:
        """Shows the last `count` lines of all logs together."""
        lines = self._new().splitlines(keepends=True)
        write(sys.stdout, "".join(lines[-count:] if count > 0 else []))

    def follow(self, folder: Path) -> None:
        """Shows what is added, until interrupted or until the service's `folder` is deleted."""
        for _ in follow(folders=[text.path.parent for text in self._texts], every=_LOOK_SECONDS):
            if not folder.exists():
                return
            if text := self._new():
                write(sys.stdout, text)

    def _new(self) -> str:
        return "".join(part for text in self._texts for part in text.read_new())
