"""Compute targets, as the dispatcher knows them: those of the workspace, and this machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.records import TargetRecord
from trainmaster.shared.serialization import from_plain

if TYPE_CHECKING:
    from trainmaster.dispatcher.runs.yard import Yard


class Targets:
    """The operations on compute targets."""

    def __init__(self, yard: Yard) -> None:
        self._yard = yard
        self._store = yard.store

    @property
    def operations(self) -> dict[str, Callable[..., Any]]:
        """By their names."""
        return {"targets.list": self.list, "targets.put": self.put, "targets.delete": self.delete}

    def list(self) -> list[TargetRecord]:
        """All targets."""
        return list(self._yard.targets().values())

    def put(self, target: Mapping[str, Any]) -> TargetRecord:
        """Keeps a target, in the place of the one of its name."""
        record = from_plain(TargetRecord, target)
        known = self._store.get_target(record.name)
        record = replace(record, created_at=known.created_at if known else time.time())
        self._store.put_target(record)
        self._yard.targets_changed()
        return record

    def delete(self, name: str) -> None:
        """Forgets a target; refused while runs are on it."""
        target_named(self._yard, name)
        users = [run.id for run in self._store.active_runs() if run.target == name]
        if users:
            raise ComputeTargetException(
                f"target '{name}' is in use by {users[0]}", hint="Cancel its runs first, or wait for them."
            )
        self._store.delete_target(name)
        self._yard.targets_changed()


def target_named(yard: Yard, name: str) -> TargetRecord:
    """The target of this name; one clear error if there is none."""
    targets = yard.targets()
    if name not in targets:
        raise ComputeTargetException(
            f"ComputeTargetNotFound: there is no compute target '{name[:300]}' in this workspace",
            hint=f"Known: {', '.join(sorted(targets))}. Create one with 'trainmaster compute create'.",
        )
    return targets[name]
