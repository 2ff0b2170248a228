"""Operations on datastores. Their options are stored encrypted."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.credentials import seal_options, unseal_options
from trainmaster.dispatcher.operation import operation
from trainmaster.job.errors import DatastoreException, UserErrorException
from trainmaster.shared.records import DatastoreRecord
from trainmaster.shared.serialization import from_plain


class DatastoreOperations:
    """Operations on datastores."""

    def __init__(self, context: Context) -> None:
        self._secrets = context.secrets
        self._store = context.store

    @operation("datastores.list")
    def list(self) -> list[DatastoreRecord]:
        """All datastores, by name."""
        return [unseal_options(store, self._secrets) for store in self._store.datastores.list_all()]

    @operation("datastores.get")
    def get(self, name: str | None = None) -> DatastoreRecord | None:
        """The datastore with this name; without a name, the default."""
        stores = self._store.datastores.list_all()
        found = next((s for s in stores if (s.is_default if name is None else s.name == name)), None)
        return None if found is None else unseal_options(found, self._secrets)

    @operation("datastores.put")
    def put(self, record: Mapping[str, Any], overwrite: bool = False) -> DatastoreRecord:
        """Register a datastore. If it replaces the default, it becomes the default."""
        store = replace(from_plain(DatastoreRecord, record), created_at=time.time())
        known = self.get(store.name)
        if not overwrite and known is not None:
            raise UserErrorException(
                f"there is a datastore '{store.name}' already", hint="Give overwrite=True to replace it."
            )
        kept = replace(store, is_default=known.is_default if known else store.is_default)
        self._store.datastores.put(seal_options(kept, self._secrets))
        return store

    @operation("datastores.delete")
    def delete(self, name: str) -> None:
        """Delete a datastore that is not the default; the data stay."""
        if self._datastore(name).is_default:
            raise UserErrorException(
                f"'{name}' is the default datastore", hint="Make another one the default first, then unregister it."
            )
        self._store.datastores.delete(name)

    @operation("datastores.set_default")
    def set_default(self, name: str) -> None:
        """Make this datastore the default."""
        self._datastore(name)
        self._store.datastores.set_default(name)

    def _datastore(self, name: str) -> DatastoreRecord:
        found = self.get(name)
        if found is None:
            raise DatastoreException(f"there is no datastore '{name[:300]}' in this workspace")
        return found
