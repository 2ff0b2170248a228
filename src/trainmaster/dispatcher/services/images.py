"""v1's images: a description of code, packages and models, with the packages installed ahead. Not a container."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.operation import operation
from trainmaster.dispatcher.services.making import find_environment, note
from trainmaster.job.errors import TrainmasterError, WebserviceException
from trainmaster.shared import beneath
from trainmaster.shared.folders import RunFolder
from trainmaster.shared.serialization import from_plain
from trainmaster.shared.service_spec import ImageRecord
from trainmaster.shared.tasks import start_task

log = logging.getLogger("trainmaster.dispatch")

_LONGEST_WAIT = 60.0


class Images:
    """All images of the workspace."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._changed = asyncio.Event()
        self._building: dict[str, asyncio.Task[None]] = {}

    @property
    def busy(self) -> bool:
        """Whether packages of an image are being installed."""
        return bool(self._building)

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        """The tasks that install packages."""
        return [*self._building.values()]

    def resume(self) -> None:
        """Continues the images that an earlier dispatcher left."""
        for record in self._store.images.find():
            if record.state == "Running":
                self._take(record, None)

    @operation("images.create")
    def create(self, image: Mapping[str, Any], sources: Mapping[str, str] | None = None) -> ImageRecord:
        """Adds the next version of an image and starts to install its packages."""
        record = replace(from_plain(ImageRecord, image), state="Running", created_at=time.time())
        # Raises an error if the name cannot be a folder name.
        self._context.folder.image(record.name, record.version)
        kept = self._store.images.add(record)
        if kept.state == "Running":
            self._take(kept, sources)
        return kept

    @operation("images.get")
    def get(self, name: str, version: int | None = None) -> ImageRecord:
        found = [each for each in self._store.images.find(name) if version in (None, each.version)]
        if not found:
            wanted = f" of version {version}" if version is not None else ""
            raise WebserviceException(f"ImageNotFound: there is no image '{name[:300]}'{wanted} in this workspace")
        return found[0]

    @operation("images.list")
    def list(self, name: str | None = None) -> list[ImageRecord]:
        return self._store.images.find(name)

    @operation("images.wait")
    async def wait(self, name: str, version: int, seconds: float = 30.0) -> ImageRecord:
        """Returns the image when it is ready or has failed, or after `seconds` at the latest."""
        end = time.monotonic() + min(seconds, _LONGEST_WAIT)
        while True:
            changed = self._changed
            record = self.get(name, version)
            rest = end - time.monotonic()
            if record.state != "Running" or rest <= 0:
                return record
            with suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), rest)

    @operation("images.label")
    def label(
        self,
        name: str,
        version: int,
        tags: Mapping[str, Any] | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> ImageRecord:
        """Replaces all tags and adds properties, which cannot be changed later."""
        known = self.get(name, version)
        for key, value in (properties or {}).items():
            if known.properties.get(key, value) != value:
                raise WebserviceException(
                    f"property '{key}' of image {known.id} is '{known.properties[key]}' already",
                    cause="Properties cannot be changed once they are set.",
                )
        after = {
            "tags": dict(known.tags if tags is None else tags),
            "properties": {**known.properties, **(properties or {})},
        }
        self._store.images.update(name, version, **after)
        return self.get(name, version)

    @operation("images.delete")
    async def delete(self, name: str, version: int) -> bool:
        """Deletes an image and its folder and stops its installation; returns whether it existed."""
        record = next((each for each in self._store.images.find(name) if each.version == version), None)
        if record is None:
            return False
        task = self._building.get(record.id)
        if task is not None:
            task.cancel()
            await asyncio.wait({task})
        # The folder first: once the record is deleted, its version may be used again.
        place = self._context.folder.image(name, version).relative_to(self._context.folder.images)
        await asyncio.to_thread(beneath.remove_tree, self._context.folder.images, str(place))
        gone = self._store.images.delete(name, version)
        self._tell()
        return gone

    def _take(self, record: ImageRecord, sources: Mapping[str, str] | None) -> None:
        if record.id not in self._building:
            task = start_task(f"image {record.id}", partial(self._build, record, sources))
            self._building[record.id] = task
            task.add_done_callback(lambda _: self._building.pop(record.id, None))

    async def _build(self, record: ImageRecord, sources: Mapping[str, str] | None) -> None:
        place = self._context.folder.image(record.name, record.version)
        changes: dict[str, Any] = {"state": "Succeeded"}
        try:
            await self._install(record, place, sources)
        except Exception as error:
            # The error becomes part of the image, which would otherwise stay Running for ever.
            if not isinstance(error, TrainmasterError | OSError):
                log.exception("image %s", record.id)
            shown = error if isinstance(error, TrainmasterError) else WebserviceException(str(error) or repr(error))
            with suppress(OSError):
                note(place / "deploy.log", f"failed: {shown.message}")
            changes = {"state": "Failed", "error": shown.to_wire()}
        self._store.images.update(record.name, record.version, **changes)
        self._tell()

    async def _install(self, record: ImageRecord, place: Path, sources: Mapping[str, str] | None) -> None:
        spec, say = record.spec, partial(note, place / "deploy.log")
        say(f"image {record.id}: the packages of its environment")
        await find_environment(
            spec.environment, spec.inherited_variables, RunFolder(place), self._context, sources, say
        )
        say("the packages are installed")

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
