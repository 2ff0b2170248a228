"""Operations on datasets: registered by name, saved with runs, located for jobs."""

from __future__ import annotations

import builtins
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trainmaster.dispatcher.operation import operation
from trainmaster.job.errors import DatastoreException, UserErrorException
from trainmaster.shared.job_spec import DataSource
from trainmaster.shared.records import DatasetRecord
from trainmaster.shared.serialization import from_plain, to_plain
from trainmaster.storage.urls import local_folder

if TYPE_CHECKING:
    from trainmaster.dispatcher.store import Store

_LONGEST_NAME = 255


class DatasetOperations:
    """Operations on datasets."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @operation("datasets.register")
    def register(self, dataset: Mapping[str, Any], new_version: bool = False) -> DatasetRecord:
        """Register a dataset. If the name exists with other data, `new_version` is required."""
        record = replace(from_plain(DatasetRecord, dataset), created_at=time.time())
        check_name(record.name)
        newest = self._store.datasets.get_by_name(record.name)
        if newest is not None and not new_version:
            if newest.definition == record.definition:
                return newest
            raise UserErrorException(
                f"there is a dataset '{record.name}' already, with other data (version {newest.version})",
                hint="Give create_new_version=True to register this as its next version.",
            )
        return self._store.datasets.register(record)

    @operation("datasets.get")
    def get(self, name: str | None = None, version: str | int | None = None, id: str | None = None) -> DatasetRecord:
        """The dataset with this id, or with this name and version."""
        if id is not None:
            found = self._store.datasets.get(str(id))
            if found is None:
                raise UserErrorException(f"there is no dataset with the id '{str(id)[:300]}' in this workspace")
            return found
        wanted = _version(version)
        found = self._store.datasets.get_by_name(str(name), wanted)
        if found is None:
            raise self._unknown(str(name), wanted)
        return found

    @operation("datasets.list")
    def list(self) -> list[DatasetRecord]:
        """The newest version of each dataset."""
        return self._store.datasets.list_newest()

    @operation("datasets.versions")
    def list_versions(self, name: str) -> builtins.list[DatasetRecord]:
        """All versions of a dataset, the newest first."""
        found = self._store.datasets.list_versions(name)
        if not found:
            raise self._unknown(name, None)
        return found

    @operation("datasets.update")
    def update(self, id: str, description: str | None = None, tags: Mapping[str, Any] | None = None) -> DatasetRecord:
        """Set the description or all tags."""
        self.get(id=id)
        self._store.datasets.update(id, description, tags)
        return self.get(id=id)

    @operation("datasets.delete")
    def delete(self, name: str) -> None:
        """Delete all versions of a name; the data stay."""
        if not self._store.datasets.delete(name):
            raise self._unknown(name, None)

    @operation("datasets.locate")
    def locate(
        self, name: str | None = None, version: str | int | None = None, id: str | None = None
    ) -> dict[str, Any]:
        """Like `get`, with paths of this machine instead of datastores, for a job."""
        record = self.get(name, version, id)
        plain: dict[str, Any] = to_plain(record)
        plain["definition"]["sources"] = [{"path": self._local(record, each)} for each in record.definition.sources]
        return plain

    def _local(self, record: DatasetRecord, source: DataSource) -> str:
        if not source.store:
            return source.path
        store = self._store.datastores.get(source.store)
        folder = local_folder(store.url) if store else None
        if folder is None:
            raise DatastoreException(
                f"dataset '{record.name or record.id}' lies in datastore '{source.store}', which a job cannot read",
                cause="It is not a folder of this machine." if store else "The datastore was deleted.",
                hint="Give the dataset to the run as an input: dataset.as_named_input('data') in its arguments.",
            )
        return f"{folder}/{source.path}"

    def _unknown(self, name: str, version: int | None) -> UserErrorException:
        newest = self._store.datasets.get_by_name(name)
        if newest is not None:
            return UserErrorException(
                f"there is no version {version} of dataset '{name[:300]}'",
                hint=f"The newest is {newest.version}.",
            )
        known = ", ".join(record.name for record in self._store.datasets.list_newest()[:50])
        return UserErrorException(
            f"there is no dataset '{name[:300]}' in this workspace",
            hint=f"Known: {known or 'none'}. Register one with dataset.register(workspace, name).",
        )


def check_name(name: str) -> None:
    """Refuse what cannot be the name of a dataset."""
    if not name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
        raise UserErrorException(
            f"{name[:60]!r} cannot be the name of a dataset", hint=f"Use 1 to {_LONGEST_NAME} printable characters."
        )


def _version(version: str | int | None) -> int | None:
    text = str(version) if version is not None else "latest"
    if text.lower() == "latest":
        return None
    if not text.isdigit():
        raise UserErrorException(
            f"{text[:60]!r} is not a version of a dataset", hint="Use a whole number, or 'latest'."
        )
    return int(text)
