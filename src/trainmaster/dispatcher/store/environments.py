"""Registered environments: every version of each, with its labels."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, RowMapping, insert, select, update

from trainmaster.dispatcher.store.schema import environments
from trainmaster.dispatcher.store.transactions import Repository, reads, writes
from trainmaster.dispatcher.store.values import clean, dump_collection
from trainmaster.dispatcher.store.versions import next_version, select_newest
from trainmaster.job.errors import UserErrorException
from trainmaster.shared.records import EnvironmentRecord

_NEWEST = "latest"
"""The label of the newest version. It cannot be set."""


class Environments(Repository):
    """The registered environments of a workspace."""

    @writes
    def register(
        self, connection: Connection, name: str, definition: Mapping[str, Any], at: float
    ) -> EnvironmentRecord:
        """Keep the definition as a new version, unless the newest version has the same definition."""
        text = clean(json.dumps(definition, sort_keys=True, separators=(",", ":")))
        digest = sha256(text.encode()).hexdigest()
        newest = self.get(name)
        if newest is not None and newest.digest == digest:
            return newest
        version = next_version(connection, environments, name)
        connection.execute(
            insert(environments).values(
                name=name, version=version, definition=text, digest=digest, labels="", created_at=at
            )
        )
        return EnvironmentRecord(name, version, json.loads(text), digest, (), at)

    @reads
    def get(
        self, connection: Connection, name: str, version: int | None = None, label: str | None = None
    ) -> EnvironmentRecord | None:
        """The environment with this version or label; without either, its newest version."""
        statement = select(environments).where(environments.c.name == name)
        if version is not None:
            statement = statement.where(environments.c.version == version)
        rows = connection.execute(statement.order_by(environments.c.version.desc())).mappings()
        records = (_record_of(row) for row in rows)
        if label is None or label.lower() == _NEWEST:
            return next(records, None)
        return next((record for record in records if label in record.labels), None)

    @reads
    def list_newest(self, connection: Connection) -> list[EnvironmentRecord]:
        """The newest version of each environment, by name."""
        return [_record_of(row) for row in connection.execute(select_newest(environments)).mappings()]

    @reads
    def list_versions(self, connection: Connection, name: str) -> list[EnvironmentRecord]:
        """All versions of an environment, the newest first."""
        statement = select(environments).where(environments.c.name == name).order_by(environments.c.version.desc())
        return [_record_of(row) for row in connection.execute(statement).mappings()]

    @writes
    def add_labels(self, connection: Connection, name: str, version: int, labels: Collection[str]) -> EnvironmentRecord:
        """Give these labels to a version, and take them from the other versions of its name."""
        reserved = [label for label in labels if label.lower() == _NEWEST]
        if reserved:
            raise UserErrorException(
                f"the label {reserved[0]!r} cannot be set", cause="The newest version always has it, and no other."
            )
        if self.get(name, version) is None:
            raise UserErrorException(f"there is no version {version} of environment {name!r}")
        for row in connection.execute(select(environments).where(environments.c.name == name)).mappings().all():
            record = _record_of(row)
            kept = [label for label in record.labels if label not in labels]
            if record.version == version:
                kept = [*kept, *dict.fromkeys(labels)]
            if tuple(kept) != record.labels:
                here = (environments.c.name == name) & (environments.c.version == record.version)
                connection.execute(update(environments).where(here).values(labels=dump_collection(kept)))
        found = self.get(name, version)
        assert found is not None
        return found


def _record_of(row: RowMapping) -> EnvironmentRecord:
    labels = tuple(json.loads(row["labels"])) if row["labels"] else ()
    return EnvironmentRecord(
        row["name"], row["version"], json.loads(row["definition"]), row["digest"], labels, row["created_at"]
    )
