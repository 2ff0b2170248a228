"""Run records and their rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Select, func, literal_column, select

from trainmaster.dispatcher.store.schema import experiments, run_specs, runs
from trainmaster.dispatcher.store.values import clean, dump, dump_collection
from trainmaster.job.errors import UserErrorException
from trainmaster.shared.records import RunError, RunRecord, Status

_STATUS = {str(status): status for status in Status}

# `runs_of` unpacks them in this order: first what is kept as it is, then what is kept in another form.
_PLAIN = (
    runs.c.seq,
    runs.c.id,
    experiments.c.name,
    runs.c.number,
    runs.c.parent_id,
    runs.c.type,
    runs.c.created_at,
    runs.c.started_at,
    runs.c.ended_at,
    runs.c.display_name,
    runs.c.description,
    runs.c.target,
    runs.c.snapshot_id,
    runs.c.waiting_for,
    runs.c.submitted_by,
    runs.c.archived_at,
)
_ENCODED = (
    runs.c.status,
    runs.c.nodes,
    runs.c.error,
    runs.c.warnings,
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
        "archived_at",
    }
)
"""The fields of a run that may change, apart from its state."""


def select_runs() -> Select[Any]:
    """Runs with an empty specification and without parameters: for lists."""
    none: ColumnElement[str] = literal_column("''")
    return select(*_PLAIN, none.label("spec"), none.label("params"), *_ENCODED).join_from(runs, experiments)


def select_whole_runs() -> Select[Any]:
    """Runs with their specifications and parameters."""
    return (
        select(*_PLAIN, func.coalesce(run_specs.c.spec, ""), runs.c.params, *_ENCODED)
        .join_from(runs, experiments)
        .join(run_specs, run_specs.c.run_seq == runs.c.seq, isouter=True)
    )


def runs_of(rows: Iterable[Sequence[Any]]) -> list[RunRecord]:
    """The records of rows of `select_runs` or `select_whole_runs`.

    A page of runs should not take much longer than its query. Creating a frozen dataclass sets its 24 fields one by
    one through object.__setattr__, which alone takes longer; so their dictionaries are set directly.
    """
    rows = list(rows)
    new, set_attribute = object.__new__, object.__setattr__
    records: list[RunRecord] = []
    # fmt: off
    for (
        (seq, id_, experiment, number, parent_id, type_, created_at, started_at, ended_at, display_name, description,
         target, snapshot_id, waiting_for, submitted_by, archived_at, spec, params, status, nodes, error, warnings,
         _, _),
        tags, properties,
    ) in zip(rows, _mappings([row[-2] for row in rows]), _mappings([row[-1] for row in rows]), strict=True):
        # fmt: on
        fields = {
            "id": id_,
            "experiment": experiment,
            "status": _STATUS[status],
            "created_at": created_at,
            "seq": seq,
            "number": number,
            "type": type_,
            "parent_id": parent_id,
            "display_name": display_name,
            "description": description,
            "target": target,
            "spec": spec,
            "snapshot_id": snapshot_id,
            "started_at": started_at,
            "ended_at": ended_at,
            "waiting_for": waiting_for,
            "nodes": _tuple(nodes) if nodes else (),
            "error": RunError(**json.loads(error)) if error else None,
            "warnings": _tuple(warnings) if warnings else (),
            "submitted_by": submitted_by,
            "tags": tags,
            "properties": properties,
            "archived_at": archived_at,
            "params": json.loads(params) if params else {},
        }
        record = new(RunRecord)
        set_attribute(record, "__dict__", fields)
        records.append(record)
    return records


def columns_of(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Column values for fields of a run, by name; other fields are refused."""
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
        "params": "",
        "end_ms": None,
    }


@lru_cache(maxsize=1024)
def _tuple(text: str) -> tuple[Any, ...]:
    # Runs of one target use the same few sets of nodes.
    return tuple(json.loads(text))


def _mappings(texts: Sequence[str]) -> list[dict[str, Any]]:
    # One long JSON text is parsed faster than many short ones.
    if not any(texts):
        return [{} for _ in texts]
    found: list[dict[str, Any]] = json.loads(f"[{','.join([text or '{}' for text in texts])}]")
    return found


def _column(name: str, value: Any) -> Any:
    if name == "error":
        return dump(asdict(value)) if value is not None else ""
    if name in ("nodes", "warnings"):
        return dump_collection(list(value))
    return clean(value) if isinstance(value, str) else value
