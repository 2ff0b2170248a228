"""The logs of a service on the screen: their last lines, then what they gain."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from trainmaster.sdk.display.screen import write
from trainmaster.sdk.run.waiting import GrowingText
from trainmaster.shared.file_events import FileEvents, ready

_LOOK_SECONDS = 1.0


class ServiceLogs:
    """Logs that are read on from where they were shown: nothing is left out between two looks."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._texts = [GrowingText(path) for path in paths]

    def show_last(self, count: int) -> None:
        """The last lines of all of them together."""
        lines = self._new().splitlines(keepends=True)
        write(sys.stdout, "".join(lines[-count:] if count > 0 else []))

    def follow(self, folder: Path) -> None:
        """What they gain, until interrupted or the service's `folder` is gone."""
        with FileEvents() as events:
            while folder.exists():
                for each in self._texts:
                    events.watch(each.path.parent)
                if text := self._new():
                    write(sys.stdout, text)
                if ready(_LOOK_SECONDS, *([events] if events.works else [])):
                    events.clear()

    def _new(self) -> str:
        return "".join(part for text in self._texts for part in text.new())
