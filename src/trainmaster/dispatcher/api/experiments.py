"""Operations on experiments."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from trainmaster.dispatcher.arguments import UNCHANGED, changes_in
from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.operation import operation
from trainmaster.dispatcher.store.experiments import View
from trainmaster.shared import beneath
from trainmaster.shared.records import ExperimentRecord


class ExperimentOperations:
    """Operations on experiments."""

    def __init__(self, context: Context) -> None:
        self._folder = context.folder
        self._experiments = context.store.experiments

    @operation("experiments.ensure")
    def ensure(self, name: str) -> ExperimentRecord:
        """The experiment with this name, created if there is none."""
        return self._experiments.ensure(name, at=time.time())

    @operation("experiments.list", from_store=True)
    def find(
        self, name: str | None = None, view: View = "active", tags: Mapping[str, Any] | None = None
    ) -> list[ExperimentRecord]:
        """Experiments, oldest first. A tag whose value is null matches any value."""
        return self._experiments.find(name, view, tags)

    @operation("experiments.update")
    def update(
        self, name: str, tags: Mapping[str, Any] = UNCHANGED, archived_at: float | None = UNCHANGED
    ) -> ExperimentRecord:
        """Set all tags, or archive the experiment (null reactivates it)."""
        return self._experiments.update(name, **changes_in(tags=tags, archived_at=archived_at))

    @operation("experiments.delete")
    async def delete(self, name: str) -> None:
        """Delete an experiment that has neither runs nor logged models; files of deleted models are removed."""
        models = self._experiments.list_logged_models(name)
        self._experiments.delete(name)
        for model_id in models:
            await asyncio.to_thread(beneath.remove_tree, self._folder.logged_models, model_id)
