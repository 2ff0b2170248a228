"""Scoring services and images: their records. Whether a service is running is not known here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from trainmaster.dispatcher.store.record_rows import RecordRows
from trainmaster.dispatcher.store.schema import images, services
from trainmaster.dispatcher.store.transactions import Repository, reads, writes
from trainmaster.dispatcher.store.versions import next_version
from trainmaster.shared.service_spec import ImageRecord, ServiceRecord, ServiceState

_SERVICE_ROWS = RecordRows(
    ServiceRecord, frozenset({"spec", "served", "settings", "tags", "properties", "error", "warnings"})
)
_IMAGE_ROWS = RecordRows(ImageRecord, frozenset({"spec", "tags", "properties", "error"}))


class Services(Repository):
    """The scoring services of a workspace."""

    @writes
    def add(self, connection: Connection, service: ServiceRecord) -> ServiceRecord:
        """Keep a new service."""
        connection.execute(insert(services).values(**_SERVICE_ROWS.columns_of(service)))
        return service

    @reads
    def get(self, connection: Connection, name: str) -> ServiceRecord | None:
        """The service with this name."""
        row = connection.execute(select(services).where(services.c.name == name)).mappings().one_or_none()
        return None if row is None else _SERVICE_ROWS.record_of(row)

    @reads
    def list_all(self, connection: Connection) -> list[ServiceRecord]:
        """All services, by name."""
        rows = connection.execute(select(services).order_by(services.c.name)).mappings()
        return [_SERVICE_ROWS.record_of(row) for row in rows]

    @writes
    def update(
        self, connection: Connection, /, name: str, expect: int | None = None, **changes: Any
    ) -> ServiceRecord | None:
        """Set fields. With `expect`, do so only while that is the generation requested last and the service is
        not being deleted; otherwise return None.
        """
        here = services.c.name == name
        if expect is not None:
            here = here & (services.c.generation == expect) & (services.c.state != str(ServiceState.DELETING))
        changed = connection.execute(update(services).where(here).values(**_SERVICE_ROWS.encode(changes))).rowcount
        return self.get(name) if changed else None

    @writes
    def delete(self, connection: Connection, name: str) -> bool:
        """Delete a service and return whether there was one."""
        return bool(connection.execute(delete(services).where(services.c.name == name)).rowcount)


class Images(Repository):
    """The images of a workspace: every version of each name."""

    @writes
    def add(self, connection: Connection, image: ImageRecord) -> ImageRecord:
        """Keep an image as the next version of its name; an image with this token stays as it is."""
        row = connection.execute(select(images).where(images.c.token == image.token)).mappings().one_or_none()
        if row is not None:
            return _IMAGE_ROWS.record_of(row)
        numbered = replace(image, version=next_version(connection, images, image.name))
        connection.execute(insert(images).values(**_IMAGE_ROWS.columns_of(numbered)))
        return numbered

    @reads
    def find(self, connection: Connection, name: str | None = None) -> list[ImageRecord]:
        """The images of a name, or all images; newest first within each name."""
        statement = select(images).order_by(images.c.name, images.c.version.desc())
        if name is not None:
            statement = statement.where(images.c.name == name)
        return [_IMAGE_ROWS.record_of(row) for row in connection.execute(statement).mappings()]

    @writes
    def update(self, connection: Connection, /, name: str, version: int, **changes: Any) -> None:
        """Set fields of an image."""
        here = (images.c.name == name) & (images.c.version == version)
        connection.execute(update(images).where(here).values(**_IMAGE_ROWS.encode(changes)))

    @writes
    def delete(self, connection: Connection, name: str, version: int) -> bool:
        """Delete an image and return whether there was one."""
        here = (images.c.name == name) & (images.c.version == version)
        return bool(connection.execute(delete(images).where(here)).rowcount)
