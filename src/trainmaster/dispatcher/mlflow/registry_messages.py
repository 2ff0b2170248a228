"""Names and versions of the registry as MLflow's clients read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from trainmaster.shared.model_addresses import make_address
from trainmaster.shared.records import ModelRecord, RegisteredModelRecord


def describe_name(record: RegisteredModelRecord, versions: Sequence[ModelRecord]) -> dict[str, Any]:
    """A registered model with its newest version in each stage; `versions` are all, those of a stage in their order."""
    found: dict[str, Any] = {
        "name": record.name,
        "creation_timestamp": to_milliseconds(record.created_at),
        "last_updated_timestamp": to_milliseconds(record.modified_at),
    }
    if record.description:
        found["description"] = record.description
    newest = find_newest(versions)
    if newest:
        found["latest_versions"] = [describe_version(each, with_aliases=False) for each in newest]
    if record.tags:
        found["tags"] = _describe_tags(record.tags.items())
    aliases = sorted((alias, each.version) for each in versions for alias in each.aliases)
    if aliases:
        found["aliases"] = [{"alias": alias, "version": str(version)} for alias, version in aliases]
    return found


def describe_version(record: ModelRecord, with_aliases: bool = True) -> dict[str, Any]:
    """A version. As in MLflow, only some answers have its aliases."""
    found: dict[str, Any] = {
        "name": record.name,
        "version": str(record.version),
        "creation_timestamp": to_milliseconds(record.created_at),
        "last_updated_timestamp": to_milliseconds(record.modified_at),
        "current_stage": record.stage,
        "description": record.description,
        "source": source_of(record),
        "run_id": record.run_id,
        "status": "READY",
        "run_link": record.run_link,
    }
    if record.tags:
        found["tags"] = _describe_tags(record.tags.items())
    if with_aliases and record.aliases:
        found["aliases"] = list(record.aliases)
    return found


def find_newest(versions: Iterable[ModelRecord]) -> list[ModelRecord]:
    """The newest version in each stage, in the order in which the stages first occur."""
    newest: dict[str, ModelRecord] = {}
    for record in versions:
        newest[record.stage] = record
    return list(newest.values())


def source_of(record: ModelRecord) -> str:
    """Where a version comes from: the address that a client of MLflow gave, or that of its files here."""
    return record.source or make_address(record.name, record.version)


def to_milliseconds(seconds: float) -> int:
    """A time as MLflow writes it.

    >>> to_milliseconds(1700000000.001)
    1700000000001
    """
    # Whole milliseconds are not exact as seconds: a tiny bit less must not become one less.
    return int(seconds * 1000 + 0.001)


def _describe_tags(pairs: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in pairs]
