"""Run records and their rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy import Select, select

from trainmaster.errors import UserErrorException
from trainmaster.records import RunError, RunRecord, Status
from trainmaster.store.schema import experiments, run_specs, runs
from trainmaster.store.values import clean, dump, dump_collection

_STATUS = {str(status): status for status in Status}

_COLUMNS = (
    runs.c.seq,
    runs.c.id,
    experiments.c.name,
    runs.c.number,
    runs.c.parent_id,
    runs.c.type,
    runs.c.status,
    runs.c.created_at,
    runs.c.started_at,
    runs.c.ended_at,
    runs.c.display_name,
    runs.c.description,
    runs.c.target,
    runs.c.snapshot_id,
    runs.c.waiting_for,
    runs.c.nodes,
    runs.c.error,
    runs.c.warnings,
    runs.c.submitted_by,
    runs.c.tags,
    runs.c.properties,
)

CHANGEABLE = frozenset(
    {
        "waiting_for",
        "nodes",
        "error",
        "warnings",
        "snapshot_id",
        "display_name",
        "description",
        "target",
        "started_at",
        "ended_at",
    }
)
"""What may change in a run beside its state."""


def select_runs() -> Select[Any]:
    """Runs without their specifications: for lists."""
    return select(*_COLUMNS).join_from(runs, experiments)


def select_whole_runs() -> Select[Any]:
    """Runs with their specifications."""
    return (
        select(*_COLUMNS, run_specs.c.spec)
        .join_from(runs, experiments)
        .join(run_specs, run_specs.c.run_seq == runs.c.seq, isouter=True)
    )


def run_of(row: tuple[Any, ...]) -> RunRecord:
    """The record of a row of `select_runs` or `select_whole_runs`."""
    record = object.__new__(RunRecord)
    # A frozen dataclass sets its 22 fields one by one through object.__setattr__; for a page of runs that takes
    # longer than the query. tests/unit/store checks that no field is forgotten here.
    vars(record).update(
        seq=row[0],
        id=row[1],
        experiment=row[2],
        number=row[3],
        parent_id=row[4],
        type=row[5],
        status=_STATUS[row[6]],
        created_at=row[7],
        started_at=row[8],
        ended_at=row[9],
        display_name=row[10],
        description=row[11],
        target=row[12],
        snapshot_id=row[13],
        waiting_for=row[14],
        nodes=tuple(json.loads(row[15])) if row[15] else (),
        error=RunError(**json.loads(row[16])) if row[16] else None,
        warnings=tuple(json.loads(row[17])) if row[17] else (),
        submitted_by=row[18],
        tags=json.loads(row[19]) if row[19] else {},
        properties=json.loads(row[20]) if row[20] else {},
        spec=(row[21] or "") if len(row) > 21 else "",
    )
    return record


def columns_of(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Column values for fields of a run, by name; refuses what is not changeable."""
    unknown = sorted(set(changes) - CHANGEABLE)
    if unknown:
        raise UserErrorException(f"A run's {', '.join(unknown)} cannot be changed")
    return {name: _column(name, value) for name, value in changes.items()}


def insertion_of(run: RunRecord) -> dict[str, Any]:
    """Column values for a new run, without its numbers."""
    fields = {name: _column(name, getattr(run, name)) for name in sorted(CHANGEABLE)}
    return {
        **fields,
        "id": run.id,
        "parent_id": run.parent_id,
        "type": run.type,
        "status": str(run.status),
        "created_at": run.created_at,
        "submitted_by": clean(run.submitted_by),
        "tags": dump_collection(run.tags),
        "properties": dump_collection(run.properties),
    }


def _column(name: str, value: Any) -> Any:
    if name == "error":
        return dump(asdict(value)) if value is not None else ""
    if name in ("nodes", "warnings"):
        return dump_collection(list(value))
    return clean(value) if isinstance(value, str) else value
