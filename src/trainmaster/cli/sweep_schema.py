"""The JSON Schema of sweep files. Pure."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from trainmaster.cli.sweep_file import KEYS_OF_SWEEP, NEEDED_KEYS
from trainmaster.sdk.job_files.schema import DIALECT, job_section_schema
from trainmaster.tuning.policies import POLICIES
from trainmaster.tuning.sampling import SAMPLINGS

_WHOLE = {"type": "integer", "minimum": 1}
_TEXT = {"type": "string", "minLength": 1}
_IDS = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]}


def sweep_schema() -> dict[str, Any]:
    """The schema of a sweep file."""
    properties: dict[str, Any] = {
        "job": {"description": "what every trial runs: the keys of a job file", **job_section_schema()},
        "space": {
            "description": "the parameters: an expression such as loguniform(-7, -1), or a list of values",
            "type": "object",
            "minProperties": 1,
            "additionalProperties": {"anyOf": [_TEXT, {"type": "array", "minItems": 1}]},
        },
        "sampling": _kinds("how parameters are drawn", {name: kind.OPTIONS for name, kind in SAMPLINGS.items()}),
        "policy": _kinds(
            "when trials are ended early",
            {name: list(inspect.signature(kind).parameters) for name, kind in POLICIES.items()},
        ),
        "metric": {"description": "what the script logs with run.log", **_TEXT},
        "goal": {"description": "whether more is better", "enum": ["maximize", "minimize", "MAXIMIZE", "MINIMIZE"]},
        "max_total_runs": {"description": "the number of trials", **_WHOLE},
        "max_concurrent_runs": {"description": "how many trials run at once", **_WHOLE},
        "max_duration_minutes": {"description": "when the sweep ends at the latest", **_WHOLE},
        "max_failures_in_a_row": {"description": "the sweep ends when so many trials fail in a row", **_WHOLE},
        "resume_from": {"description": "ids of earlier sweeps whose trials count", **_IDS},
        "resume_child_runs": {"description": "ids of earlier trials that continue", **_IDS},
        "experiment": {"description": "the experiment (default: the name of the job's folder)", **_TEXT},
        "tags": {"description": "tags of the sweep", "type": "object", "minProperties": 1},
    }
    assert set(properties) == KEYS_OF_SWEEP
    return {
        "$schema": DIALECT,
        "title": "A sweep of Trainmaster",
        "type": "object",
        "additionalProperties": False,
        "required": list(NEEDED_KEYS),
        "properties": properties,
    }


def _kinds(meaning: str, kinds: Mapping[str, Any]) -> dict[str, Any]:
    """A kind alone, or with its own keys."""
    whole = [
        {
            "type": "object",
            "additionalProperties": False,
            "required": ["kind"],
            "properties": {"kind": {"const": name}, **{key: {} for key in keys}},
        }
        for name, keys in kinds.items()
    ]
    return {"description": meaning, "anyOf": [{"enum": list(kinds)}, *whole]}
