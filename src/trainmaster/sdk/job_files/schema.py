"""The JSON Schema of job files, for editors: completion, descriptions, and marks at mistakes. Pure."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from trainmaster.sdk.job_files.description import Details
from trainmaster.sdk.job_files.keys import (
    COMMAND,
    DETAILS,
    ENTRIES,
    FIELDS,
    FLAG,
    KEYS,
    MODES,
    NUMBER,
    OF_RUN,
    PAIRS,
    TEXT,
    VERSION,
    WHOLE,
    WORDS,
    Key,
)

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_SCALAR = {"type": ["string", "number", "boolean", "null"]}
_LIST = {"type": "array", "items": _SCALAR}
_KINDS: dict[str, dict[str, Any]] = {
    TEXT: {"type": "string", "minLength": 1},
    WORDS: {"anyOf": [{"type": "string"}, _LIST]},
    COMMAND: {"anyOf": [{"type": "string", "minLength": 1}, _LIST]},
    WHOLE: {"type": "integer"},
    NUMBER: {"type": "number", "exclusiveMinimum": 0},
    FLAG: {"type": "boolean"},
    VERSION: {"type": ["string", "number"]},
    PAIRS: {"type": "object", "minProperties": 1, "additionalProperties": _SCALAR},
}
_LEAST = {"nodes": 1, "min_nodes": 1, "processes_per_node": 1, "max_seconds": 1, "max_retries": 0, "wait_seconds": 0}
_PATTERNS = {
    "distributed": r"^(mpi|gloo|nccl|ps +\d+:\d+)$",
    "framework": r"^(pytorch|tensorflow|sklearn|chainer)(==?[0-9].*)?$",
}


def job_schema() -> dict[str, Any]:
    """The schema of a job file."""
    return {
        "$schema": DIALECT,
        "title": "A job of Trainmaster",
        **_section(list(KEYS)),
        "oneOf": [{"required": [name]} for name in ("script", "module", "command")],
    }


def job_section_schema() -> dict[str, Any]:
    """The schema of the section `job` of a sweep file."""
    return {
        **_section([key for key in KEYS if key.name not in OF_RUN]),
        "oneOf": [{"required": [name]} for name in ("script", "module", "command")],
    }


def _section(keys: list[Key]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {key.name: {"description": key.meaning, **_value(key)} for key in keys},
    }


def _value(key: Key) -> dict[str, Any]:
    if key.kind == ENTRIES:
        return {"type": "object", "minProperties": 1, "additionalProperties": _entry(key.name)}
    if key.kind == DETAILS:
        return {
            "type": "object",
            "additionalProperties": False,
            "properties": {each.name: {} for each in fields(Details)},
        }
    found = dict(_KINDS[key.kind])
    if key.choices:
        found["enum"] = list(key.choices)
    if key.name in _LEAST:
        found["minimum"] = _LEAST[key.name]
    if key.name in _PATTERNS:
        found["pattern"] = _PATTERNS[key.name]
    return found


def _entry(section: str) -> dict[str, Any]:
    whole: dict[str, Any] = {name: {} for name in FIELDS[section]}
    whole["mode"] = {"enum": list(MODES[section])}
    return {
        "anyOf": [
            {"type": "string", "minLength": 1},
            {"type": "object", "minProperties": 1, "additionalProperties": False, "properties": whole},
        ]
    }
