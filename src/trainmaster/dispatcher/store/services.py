"""Scoring services and images: their records. Whether a service lives is seen elsewhere."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, func, insert, select, update

from trainmaster.dispatcher.store.schema import images, services
from trainmaster.dispatcher.store.values import clean
from trainmaster.shared.serialization import from_plain, to_plain
from trainmaster.shared.service_spec import ImageRecord, ServiceRecord, ServiceState

_JSON = ("spec", "served", "settings", "tags", "properties", "error", "warnings")


def add(connection: Connection, record: ServiceRecord) -> ServiceRecord:
    """Insert a service that is new."""
    connection.execute(insert(services).values(**_row(record)))
    return record


def get(connection: Connection, name: str) -> ServiceRecord | None:
    """The service of this name."""
    row = connection.execute(select(services).where(services.c.name == name)).mappings().one_or_none()
    return None if row is None else _service(row)


def find_all(connection: Connection) -> list[ServiceRecord]:
    """All services by name."""
    return [_service(row) for row in connection.execute(select(services).order_by(services.c.name)).mappings()]


def change(
    connection: Connection, name: str, changes: Mapping[str, Any], expect: int | None = None
) -> ServiceRecord | None:
    """Set these fields; with `expect` only if that is still the generation asked for last. None if it was not.

    Then nothing is changed of one that is being deleted either: what is found out about it comes too late.
    """
    here = services.c.name == name
    if expect is not None:
        here = here & (services.c.generation == expect) & (services.c.state != str(ServiceState.DELETING))
    values = {key: _stored(key, value) for key, value in changes.items()}
    changed = connection.execute(update(services).where(here).values(**values)).rowcount
    return get(connection, name) if changed else None


def remove(connection: Connection, name: str) -> bool:
    """Delete the record; whether there was one."""
    return bool(connection.execute(delete(services).where(services.c.name == name)).rowcount)


def add_image(connection: Connection, record: ImageRecord) -> ImageRecord:
    """Insert an image as the next version of its name; the same token again is the same image."""
    row = connection.execute(select(images).where(images.c.token == record.token)).mappings().one_or_none()
    if row is not None:
        return _image(row)
    newest = connection.execute(select(func.max(images.c.version)).where(images.c.name == record.name)).scalar()
    numbered = replace(record, version=(newest or 0) + 1)
    connection.execute(insert(images).values(**_row(numbered)))
    return numbered


def find_images(connection: Connection, name: str | None = None) -> list[ImageRecord]:
    """All images of a name, or of all names; newest first within each."""
    statement = select(images).order_by(images.c.name, images.c.version.desc())
    if name is not None:
        statement = statement.where(images.c.name == name)
    return [_image(row) for row in connection.execute(statement).mappings()]


def change_image(connection: Connection, name: str, version: int, changes: Mapping[str, Any]) -> None:
    """Set these fields."""
    here = (images.c.name == name) & (images.c.version == version)
    values = {key: _stored(key, value) for key, value in changes.items()}
    connection.execute(update(images).where(here).values(**values))


def remove_image(connection: Connection, name: str, version: int) -> bool:
    """Delete the record; whether there was one."""
    here = (images.c.name == name) & (images.c.version == version)
    return bool(connection.execute(delete(images).where(here)).rowcount)


def _row(record: ServiceRecord | ImageRecord) -> dict[str, Any]:
    return {each.name: _stored(each.name, getattr(record, each.name)) for each in fields(record)}


def _stored(key: str, value: Any) -> Any:
    if key in _JSON:
        return clean(json.dumps(to_plain(value), sort_keys=True))
    return clean(value) if isinstance(value, str) else value


def _service(row: RowMapping) -> ServiceRecord:
    return from_plain(ServiceRecord, _plain(row))


def _image(row: RowMapping) -> ImageRecord:
    return from_plain(ImageRecord, _plain(row))


def _plain(row: RowMapping) -> dict[str, Any]:
    return {key: json.loads(value) if key in _JSON else value for key, value in row.items()}
