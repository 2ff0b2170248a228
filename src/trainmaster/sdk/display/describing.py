"""A run as the command line shows it: JSON keys, colours, sentences. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainmaster.sdk.display.text import first_line
from trainmaster.shared.records import TERMINAL, RunRecord, Status

SWEEP = "hyperdrive"
"""The type of a sweep's run."""

_STYLES = {
    Status.COMPLETED: "green",
    Status.FAILED: "red",
    Status.CANCELED: "yellow",
    Status.CANCEL_REQUESTED: "yellow",
    Status.RUNNING: "cyan",
    Status.FINALIZING: "cyan",
    Status.STARTING: "cyan",
}


def style_of(status: str) -> str:
    """The colour of a state."""
    return next((style for known, style in _STYLES.items() if known == status), "")


def took(record: RunRecord, now: float) -> float | None:
    """Seconds from the start of the script to its end, or to now; None for a run that never started."""
    if record.started_at is None:
        return None
    if record.ended_at is None and record.status in TERMINAL:
        return None
    return max(0.0, (now if record.ended_at is None else record.ended_at) - record.started_at)


def reason(record: RunRecord) -> str:
    """Why a run waits, or why it failed, in a line."""
    if record.error is not None:
        return first_line(record.error.message)
    return record.waiting_for


def list_labels(record: RunRecord) -> str:
    """The tags of a run as text, without the settings of a sweep, which v1 keeps as tags too, each twice.

    >>> from trainmaster.shared.records import RunRecord, Status
    >>> tags = {"kind": "base", "good": None, "_aml_system_seed": "1", "seed": "1"}
    >>> list_labels(RunRecord("a_1", "a", Status.QUEUED, 0.0, tags=tags))
    'kind=base, good'
    """
    own = {name: value for name, value in record.tags.items() if not _is_setting(name, record.tags)}
    return ", ".join(name if value is None else f"{name}={value}" for name, value in own.items())


def _is_setting(name: str, tags: Mapping[str, Any]) -> bool:
    return name.startswith("_aml_system_") or f"_aml_system_{name}" in tags


def run_as_json(record: RunRecord) -> dict[str, Any]:
    """The keys of a run in `runs`, `show`, `submit` and `cancel`. Times are ISO 8601, UTC."""
    seconds = None if record.ended_at is None else took(record, record.ended_at)
    return {
        "id": record.id,
        "experiment": record.experiment,
        "number": record.number,
        "display_name": record.display_name or record.id,
        "parent_id": record.parent_id,
        "type": record.type,
        "target": record.target,
        "status": str(record.status),
        "waiting_for": record.waiting_for or None,
        "error": error_as_json(record),
        "warnings": list(record.warnings),
        "created_at": iso(record.created_at),
        "started_at": iso(record.started_at),
        "ended_at": iso(record.ended_at),
        "duration_seconds": None if seconds is None else round(seconds, 3),
        "snapshot_id": record.snapshot_id or None,
        "submitted_by": record.submitted_by,
        "tags": dict(record.tags),
    }


def error_as_json(record: RunRecord) -> dict[str, Any] | None:
    """The code, the message, and details about the process that failed."""
    if record.error is None:
        return None
    return {"code": record.error.code, "message": record.error.message, **record.error.details}


def iso(seconds: float | None) -> str | None:
    """
    >>> iso(0)
    '1970-01-01T00:00:00.000000Z'
    """
    from trainmaster.sdk.run.details import iso_time

    return iso_time(seconds)
