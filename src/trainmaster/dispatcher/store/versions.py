"""Tables that keep every version of a name: environments, datasets, models and images."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Select, Table, func, select


def next_version(connection: Connection, table: Table, name: str) -> int:
    """The number of a new version of `name`; the first one is 1."""
    newest = connection.execute(select(func.max(table.c.version)).where(table.c.name == name)).scalar()
    return (newest or 0) + 1


def select_newest(table: Table) -> Select[Any]:
    """The newest version of each name, by name."""
    newest = (
        select(table.c.name, func.max(table.c.version).label("version"))
        .where(table.c.name.is_not(None))
        .group_by(table.c.name)
        .subquery()
    )
    is_newest = (table.c.name == newest.c.name) & (table.c.version == newest.c.version)
    return select(table).join(newest, is_newest).order_by(table.c.name)
