"""The logs of a service on the screen: their last lines, then what is added."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import WebserviceException
from trainmaster.sdk.display.screen import write

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace


class ServiceLogs:
    """Logs that are read from where the last read ended, so that no line is skipped or repeated."""

    def __init__(self, workspace: Workspace, name: str) -> None:
        self._workspace = workspace
        self._name = name
        self._places: dict[str, Any] = {}

    def show_last(self, count: int, init: bool) -> None:
        """Shows the last `count` lines of all logs together; with `init`, of that of its deployment."""
        answer = self._workspace.connection.call("services.logs", name=self._name, lines=count, init=init)
        self._show(answer)

    def follow(self) -> None:
        """Shows what is added, until interrupted or until the service is deleted."""
        with self._workspace.backend.open_connection() as connection:
            while True:
                try:
                    answer = connection.call("services.read_logs", name=self._name, places=self._places)
                except WebserviceException:
                    # The service was deleted.
                    return
                self._show(answer)

    def _show(self, answer: dict[str, Any]) -> None:
        self._places = answer["places"]
        if answer["text"]:
            write(sys.stdout, answer["text"])
