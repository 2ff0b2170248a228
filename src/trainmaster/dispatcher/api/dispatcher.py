"""Operations on the dispatcher itself."""

from __future__ import annotations

import os
from typing import Any

from trainmaster import __version__
from trainmaster.dispatcher.operation import operation
from trainmaster.dispatcher.own_code import OwnCode
from trainmaster.dispatcher.runs.active import ActiveRuns
from trainmaster.dispatcher.services import Services
from trainmaster.dispatcher.store import Store
from trainmaster.shared.records import MLFLOW_RUN


class DispatcherOperations:
    """What clients and agents ask of the dispatcher."""

    def __init__(self, store: Store, runs: ActiveRuns, services: Services) -> None:
        self._store = store
        self._runs = runs
        self._services = services
        self._code = OwnCode()

    @operation("hello")
    def hello(self, version: str) -> dict[str, Any]:
        """Who answers, and whether its files have been replaced since it started."""
        return {"version": __version__, "pid": os.getpid(), "outdated": self._code.has_changed()}

    @operation("status")
    def status(self) -> dict[str, Any]:
        """What the dispatcher has to do."""
        return {
            "version": __version__,
            "pid": os.getpid(),
            "active": [run for run in self._store.runs.list_active() if run.type != MLFLOW_RUN],
            "services": [record.name for record in self._services.list()],
        }

    @operation("agent.notify")
    def notify(self, run_id: str, node: int, event: str) -> None:
        """An agent reports that its script runs or that it has ended."""
        self._runs.hear_from_agent(run_id, event)
