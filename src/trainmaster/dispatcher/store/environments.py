"""Registered environments: every version of each, with its labels."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, RowMapping, func, insert, select, update

from trainmaster.dispatcher.store.schema import environments
from trainmaster.dispatcher.store.values import clean, dump_collection
from trainmaster.job.errors import UserErrorException
from trainmaster.shared.records import EnvironmentRecord

_NEWEST = "latest"
"""A label that nobody sets: the newest version has it."""


def put(connection: Connection, name: str, definition: Mapping[str, Any], at: float) -> EnvironmentRecord:
    """The newest version if it says the same, or a new one."""
    text = clean(json.dumps(definition, sort_keys=True, separators=(",", ":")))
    digest = sha256(text.encode()).hexdigest()
    newest = get(connection, name)
    if newest is not None and newest.digest == digest:
        return newest
    version = newest.version + 1 if newest else 1
    connection.execute(
        insert(environments).values(
            name=name, version=version, definition=text, digest=digest, labels="", created_at=at
        )
    )
    return EnvironmentRecord(name, version, json.loads(text), digest, (), at)


def get(
    connection: Connection, name: str, version: int | None = None, label: str | None = None
) -> EnvironmentRecord | None:
    """The environment of this version or label; of neither: the newest."""
    statement = select(environments).where(environments.c.name == name)
    if version is not None:
        statement = statement.where(environments.c.version == version)
    rows = connection.execute(statement.order_by(environments.c.version.desc())).mappings()
    records = (_record(row) for row in rows)
    if label is None or label.lower() == _NEWEST:
        return next(records, None)
    return next((record for record in records if label in record.labels), None)


def newest(connection: Connection) -> list[EnvironmentRecord]:
    """The newest version of each, by name."""
    last = select(environments.c.name, func.max(environments.c.version).label("version")).group_by(environments.c.name)
    chosen = last.subquery()
    statement = select(environments).join(
        chosen, (environments.c.name == chosen.c.name) & (environments.c.version == chosen.c.version)
    )
    return [_record(row) for row in connection.execute(statement.order_by(environments.c.name)).mappings()]


def label(connection: Connection, name: str, version: int, labels: Collection[str]) -> EnvironmentRecord:
    """Give these labels to a version; another version of the environment that had one loses it."""
    reserved = [each for each in labels if each.lower() == _NEWEST]
    if reserved:
        raise UserErrorException(
            f"the label {reserved[0]!r} cannot be set", cause="The newest version always has it, and no other."
        )
    chosen = get(connection, name, version)
    if chosen is None:
        raise UserErrorException(f"there is no version {version} of environment {name!r}")
    for row in connection.execute(select(environments).where(environments.c.name == name)).mappings().all():
        record = _record(row)
        kept = [each for each in record.labels if each not in labels]
        if record.version == version:
            kept = [*kept, *dict.fromkeys(labels)]
        if tuple(kept) != record.labels:
            here = (environments.c.name == name) & (environments.c.version == record.version)
            connection.execute(update(environments).where(here).values(labels=dump_collection(kept)))
    found = get(connection, name, version)
    assert found is not None
    return found


def _record(row: RowMapping) -> EnvironmentRecord:
    labels = tuple(json.loads(row["labels"])) if row["labels"] else ()
    return EnvironmentRecord(
        row["name"], row["version"], json.loads(row["definition"]), row["digest"], labels, row["created_at"]
    )
