"""The steps from one version of the tables to the next. All pending steps are one transaction."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, delete, insert, inspect, select, text

from trainmaster.job.errors import WorkspaceException
from trainmaster.server.identity import schema

NOT_CREATED = 0


def _create(connection: Connection) -> None:
    # Later steps change what this one has made: a new column belongs into a step of its own, not only into `schema`.
    schema.metadata.create_all(connection)


def _add_count(connection: Connection) -> None:
    audit = schema.audit
    columns = inspect(connection).get_columns(audit.name, schema=audit.schema)
    if not any(column["name"] == audit.c.count.name for column in columns):
        table = connection.dialect.identifier_preparer.format_table(audit)
        connection.execute(text(f"ALTER TABLE {table} ADD COLUMN count INTEGER NOT NULL DEFAULT 1"))


STEPS: tuple[Callable[[Connection], None], ...] = (_create, _add_count)
"""Step number n takes the tables from version n to version n + 1."""


def read_version(connection: Connection) -> int:
    """The version of the tables, `NOT_CREATED` without any."""
    if not inspect(connection).has_table(schema.version.name):
        return NOT_CREATED
    return int(connection.execute(select(schema.version.c.version)).scalar_one())


def migrate(connection: Connection, shown: str) -> None:
    """Bring the tables to this release's version, in the transaction of `connection`."""
    found = read_version(connection)
    if found > schema.VERSION:
        raise WorkspaceException(
            f"{shown} was written by a newer Trainmaster",
            cause=f"Its tables have version {found}; this release knows version {schema.VERSION}.",
            hint="Install the newer release.",
        )
    if found == schema.VERSION:
        return
    for step in STEPS[found:]:
        step(connection)
    connection.execute(delete(schema.version))
    connection.execute(insert(schema.version).values(version=schema.VERSION))
