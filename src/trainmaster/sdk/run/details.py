"""`Run.get_details()`: v1's keys, from our records. Pure, except for the list of logs."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from trainmaster.sdk.run import files as run_files
from trainmaster.shared.records import RunError, RunRecord, Status

if TYPE_CHECKING:
    from trainmaster.sdk.backend.backend import RunFiles


def run_details(record: RunRecord, files: RunFiles) -> dict[str, Any]:
    """The run as a dict. Only a run with an error has the key `error`, and only one of MLflow `parameters`."""
    details: dict[str, Any] = {
        "runId": record.id,
        "target": record.target,
        "status": str(record.status),
        "startTimeUtc": iso_time(record.started_at),
        "endTimeUtc": iso_time(record.ended_at),
        "warnings": [{"message": text} for text in record.warnings],
        "properties": dict(record.properties),
        "inputDatasets": _datasets(record, "dataset_inputs"),
        "outputDatasets": _datasets(record, "dataset_outputs"),
        "runDefinition": run_definition(record),
        "logFiles": {name: files.address(name) for name in run_files.log_names(files)},
        "submittedBy": record.submitted_by,
        "displayName": record.display_name or record.id,
        "description": record.description,
        "tags": dict(record.tags),
    }
    if record.params:
        details["parameters"] = dict(record.params)
    if record.error is not None:
        details["error"] = error_details(record.error)
    attempts = run_attempts(record, files)
    if attempts:
        details["attempts"] = attempts
    if record.waiting_for:
        details["waitingFor"] = record.waiting_for
    return details


def _datasets(record: RunRecord, which: str) -> list[dict[str, Any]]:
    """Datasets of a run as the job specification has them; `Run.get_details` turns them into objects."""
    found: list[dict[str, Any]] = json.loads(record.spec).get(which, []) if record.spec else []
    return found


def error_details(error: RunError) -> dict[str, Any]:
    """An error in v1's nesting, with details about the process that failed."""
    return {
        "error": {"code": error.code, "message": error.message},
        "code": error.code,
        "message": error.message,
        **error.details,
    }


def run_attempts(record: RunRecord, files: RunFiles) -> list[dict[str, Any]]:
    """Number, state and error of every attempt, for a run that may be or was retried; empty for any other."""
    if not record.spec:
        return []
    attempts = files.read_failed_attempts()
    if not attempts and not json.loads(record.spec).get("max_retries"):
        return []
    found: list[dict[str, Any]] = [
        {
            "number": failed.number,
            "status": str(Status.FAILED),
            "startTimeUtc": iso_time(failed.started_at),
            "endTimeUtc": iso_time(failed.ended_at),
            "error": error_details(failed.error),
        }
        for failed in attempts
    ]
    last: dict[str, Any] = {"number": len(found) + 1, "status": str(record.status)}
    return [*found, {**last, **({"error": error_details(record.error)} if record.error else {})}]


def run_definition(record: RunRecord) -> dict[str, Any]:
    """The job specification with v1's names."""
    if not record.spec:
        return {}
    spec = json.loads(record.spec)
    arguments = list(spec.get("arguments", []))
    distribution = spec.get("distribution", {})
    return {
        "script": spec.get("script"),
        "command": " ".join(spec.get("command", [])),
        "arguments": arguments,
        "Arguments": arguments,
        "target": spec.get("target"),
        "framework": spec.get("framework"),
        "communicator": spec.get("communicator"),
        "nodeCount": spec.get("node_count"),
        "maxRunDurationSeconds": spec.get("max_run_duration_seconds"),
        "maxRetries": spec.get("max_retries", 0),
        "hangSeconds": spec.get("hang_seconds"),
        "priority": spec.get("priority", 0),
        "environment": spec.get("environment"),
        "environmentVariables": spec.get("environment_variables"),
        "mpi": {"processCountPerNode": distribution.get("process_count_per_node")},
        "tensorflow": {
            "workerCount": distribution.get("worker_count"),
            "parameterServerCount": distribution.get("parameter_server_count"),
        },
        "dataReferences": {each["name"]: each for each in spec.get("data", [])},
    }


def iso_time(seconds: float | None) -> str | None:
    """
    >>> iso_time(0)
    '1970-01-01T00:00:00.000000Z'
    """
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
