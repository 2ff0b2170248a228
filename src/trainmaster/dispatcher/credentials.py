"""Options of datastores, which may contain keys: stored encrypted, decrypted only for a storage driver."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import WorkspaceException
from trainmaster.shared.records import DatastoreRecord
from trainmaster.storage.storage import SEALED

if TYPE_CHECKING:
    from trainmaster.dispatcher.secrets import Secrets

log = logging.getLogger("trainmaster.dispatch")


def seal_options(record: DatastoreRecord, secrets: Secrets) -> DatastoreRecord:
    """`record` with encrypted options, as it is stored."""
    if not record.options or SEALED in record.options:
        return record
    return replace(record, options={SEALED: secrets.seal(json.dumps(dict(record.options)))})


def unseal_options(record: DatastoreRecord, secrets: Secrets) -> DatastoreRecord:
    """`record` with plain options. If they cannot be decrypted, they stay: using the datastore then gives an error."""
    if SEALED not in record.options:
        return record
    try:
        options = json.loads(secrets.unseal(record.options[SEALED], f"the options of datastore '{record.name}'"))
    except WorkspaceException as error:
        log.warning("datastore %s: %s", record.name, error)
        return record
    return replace(record, options=options)


def options_for_stage(stores: Iterable[DatastoreRecord], secrets: Secrets) -> bytes:
    """What the process that copies data reads from its standard input: the options of each datastore, by its name."""
    plain: Mapping[str, Any] = {store.name: dict(unseal_options(store, secrets).options) for store in stores}
    return json.dumps(plain).encode()
