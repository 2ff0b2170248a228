"""Runs and targets that a request names: found, or one clear error."""

from __future__ import annotations

from collections.abc import Mapping

from trainmaster.dispatcher.store import Store
from trainmaster.job.errors import ComputeTargetException, RunNotFoundException
from trainmaster.shared.records import RunRecord, TargetRecord


def require_run(store: Store, run_id: str) -> RunRecord:
    """The run with this id."""
    record = store.runs.get(run_id)
    if record is None:
        raise RunNotFoundException(
            f"there is no run '{run_id[:300]}' in this workspace", hint="'trainmaster runs' lists them."
        )
    return record


def require_target(targets: Mapping[str, TargetRecord], name: str) -> TargetRecord:
    """The target with this name."""
    if name not in targets:
        raise ComputeTargetException(
            f"ComputeTargetNotFound: there is no compute target '{name[:300]}' in this workspace",
            hint=f"Known: {', '.join(sorted(targets))}. Create one with 'trainmaster compute create'.",
        )
    return targets[name]
